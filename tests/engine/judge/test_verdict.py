import math

import pytest

from engine.generate import Generation
from engine.judge.verdict import parse_verdict, read_verdict
from engine.records import Category, Gap, ParseStatus

GAP = '{"category": "attribute", "target": "Ana", "slot": "birthplace", "description": "where Ana was born"}'
ANA = Gap(Category.ATTRIBUTE, "Ana", "birthplace", "where Ana was born")


@pytest.mark.parametrize(
    ("text", "sufficient", "gaps", "status"),
    [
        ('{"sufficient": true, "gap_items": []}', True, (), ParseStatus.OK),
        (f'{{"sufficient": false, "gap_items": [{GAP}]}}', False, (ANA,), ParseStatus.OK),
        ('{"sufficient": false, "gap_items": []}', False, (), ParseStatus.OK),
        (f'```json\n{{"sufficient": false, "gap_items": [{GAP}]}}\n```', False, (ANA,), ParseStatus.REPAIRED),
        (f"[{GAP}]", False, (ANA,), ParseStatus.REPAIRED),
        ("{'sufficient': False}", False, (), ParseStatus.REPAIRED),
        ('Sure! {"sufficient": true} hope it helps', True, (), ParseStatus.REPAIRED),
        ('{"a": 1} {"sufficient": true} {"sufficient": false}', True, (), ParseStatus.REPAIRED),
        ('{"properties":{"sufficient":true,"gaps":[]}}', True, (), ParseStatus.REPAIRED),
        (f'{{"Sufficient": "No", "Gap Items": [{GAP}]}}', False, (ANA,), ParseStatus.REPAIRED),
        ('{"sufficient": "false", "gap_items": []}', False, (), ParseStatus.REPAIRED),
        ('{"sufficient": 1, "gap_items": []}', False, (), ParseStatus.UNPARSED),
        ('{"sufficient": "maybe"}', False, (), ParseStatus.UNPARSED),
        (f'{{"sufficient": true, "gap_items": [{GAP}]}}', True, (), ParseStatus.CONTRADICTION),
        ('{"sufficient": true, "gap_items": "none"}', True, (), ParseStatus.REPAIRED),
        ("", False, (), ParseStatus.UNPARSED),
        ("no JSON at all", False, (), ParseStatus.UNPARSED),
        ("[" * 5000, False, (), ParseStatus.UNPARSED),
    ],
)
def test_replies(text, sufficient, gaps, status):
    assert parse_verdict(text) == (sufficient, gaps, status)


def test_a_cut_reply_is_truncated_and_insufficient():
    cut = '{"sufficient": false, "gaps": [{"category": "bridge_ent'
    assert parse_verdict(cut, "length") == (False, (), ParseStatus.TRUNCATED)
    assert parse_verdict(cut, "stop") == (False, (), ParseStatus.UNPARSED)


def test_unusable_gap_items_are_left_out():
    text = '{"sufficient": false, "gap_items": [3, {}, {"category": "bridge entity", "target": " Ana  B "}]}'
    assert parse_verdict(text) == (False, (Gap(Category.BRIDGE_ENTITY, "Ana B", "", ""),), ParseStatus.OK)


def test_an_unknown_category_is_other():
    text = '{"sufficient": false, "gap_items": [{"category": "mood", "target": "Ana", "slot": 5}]}'
    assert parse_verdict(text)[1] == (Gap(Category.OTHER, "Ana", "", ""),)


def test_score_is_the_difference_of_label_log_probs():
    verdict = read_verdict(Generation('{"sufficient": true, "gap_items": []}', 9, 9, "stop", (-0.5, -1.5)))
    assert verdict.score == pytest.approx(1.0)
    assert verdict.p_sufficient == pytest.approx(1 / (1 + math.exp(-1.0)))
    assert read_verdict(Generation("{}", 1, 1, "stop")).score is None
