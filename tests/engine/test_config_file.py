import pytest
import yaml

from engine.config import (
    EmbeddingConfig,
    ExperimentConfig,
    FixedRoundsConfig,
    PointerConfig,
    S2GConfig,
    SyntheticConfig,
)
from engine.config_file import dump_config, load_config, parse_config
from engine.errors import ConfigError

SMALL = """
name: small
questions: {path: q.jsonl}
retriever: {kind: synthetic}
models: {main: {kind: scripted}}
truncate: {kind: fixed, k: 6}
"""


def parse(*overrides: str, text: str = SMALL) -> ExperimentConfig:
    return parse_config(text, "small.yaml", overrides)


def refused(*overrides: str, text: str = SMALL) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(*overrides, text=text)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_file_is_read_with_its_defaults(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    config = load_config(path)
    assert config.name == "small"
    assert isinstance(config.retriever, SyntheticConfig)
    assert config.loop == S2GConfig(max_turns=4)
    assert config.extract == PointerConfig()
    assert config == load_config(str(path), [])


@pytest.mark.parametrize(
    ("override", "read", "value"),
    [
        ("seed=7", lambda c: c.seed, 7),
        ("name=other", lambda c: c.name, "other"),
        ("truncate.k=3", lambda c: c.truncate.k, 3),
        ("models.main.latency_s=0.5", lambda c: c.models["main"].latency_s, 0.5),
        ("cluster.shard_size=8", lambda c: c.cluster.shard_size, 8),
        ("models.second={kind: scripted, slots: 2}", lambda c: c.models["second"].slots, 2),
        ("models.second.kind=scripted", lambda c: c.models["second"].kind, "scripted"),
        ("reason.rationale=true", lambda c: c.reason.rationale, True),
        ("judge.threshold=-0.25", lambda c: c.judge.threshold, -0.25),
        ("judge.threshold=~", lambda c: c.judge.threshold, None),
        ("judge.threshold=", lambda c: c.judge.threshold, None),
        ("questions.path=a=b.jsonl", lambda c: c.questions.path, "a=b.jsonl"),
        ("questions.path='7'", lambda c: c.questions.path, "7"),
        (
            "loop={kind: fixed_rounds, rounds: 2}",
            lambda c: c.loop,
            FixedRoundsConfig(rounds=2),
        ),
    ],
)
def test_overrides_are_yaml_at_a_path(override, read, value):
    assert read(parse(override)) == value


def test_a_later_override_wins_and_one_can_build_on_another():
    assert parse("seed=1", "seed=2").seed == 2
    config = parse("encoders.main.kind=hashing", "extract.kind=embedding", "extract.max_sentences=2")
    assert config.extract == EmbeddingConfig(max_sentences=2)


@pytest.mark.parametrize("override", ["loop.max_turns=2", "extract.max_sentences=2"])
def test_a_setting_of_a_part_that_the_file_leaves_to_its_default_kind(override):
    config = parse(override)
    section, _, key = override.partition("=")[0].partition(".")
    assert getattr(getattr(config, section), key) == 2
    assert getattr(config, section).kind == getattr(parse(), section).kind


def test_a_null_override_takes_back_what_the_file_sets():
    text = SMALL + "judge: {threshold: 1.5}\n"
    assert parse(text=text).judge.threshold == 1.5
    assert parse("judge.threshold=~", text=text).judge.threshold is None


def test_a_list_where_a_number_belongs_is_refused_by_its_key():
    message = refused("truncate.k=[1, 2]")
    assert message.startswith("small.yaml: truncate")
    assert "k: input should be a valid integer" in message


@pytest.mark.parametrize("override", ["seed", "=3", "", "loop.max_turns 2"])
def test_an_override_without_key_and_value_shows_the_form(override):
    assert refused(override) == f"override '{override}' must look like a.b=value"


def test_an_override_through_a_value_is_refused():
    assert refused("name.first=x") == "small.yaml: name: input should be a valid string"


@pytest.mark.parametrize("override", [".a=1", "a.=1", "a..b=1"])
def test_an_override_with_an_empty_step_shows_the_form(override):
    assert refused(override) == f"override '{override}' must look like a.b=value"


def test_an_override_of_a_section_merges_into_it_and_one_of_another_kind_starts_afresh():
    text = SMALL + "loop: {kind: s2g, max_turns: 2, max_gaps: 3}\n"
    assert parse("loop={max_turns: 1}", text=text).loop == S2GConfig(max_turns=1, max_gaps=3)
    assert parse("loop={kind: s2g, max_turns: 1}", text=text).loop == S2GConfig(max_turns=1, max_gaps=3)
    assert parse("loop.kind=fixed_rounds", text=text).loop == FixedRoundsConfig()
    assert parse("loop.kind=fixed_rounds", "loop.rounds=2", text=text).loop == FixedRoundsConfig(rounds=2)


@pytest.mark.parametrize("override", ["seed=[1", "seed={a: b: c}"])
def test_an_override_whose_value_is_not_yaml(override):
    assert refused(override) == f"override '{override}': the value is not YAML"


@pytest.mark.parametrize(
    ("override", "key", "nearest"),
    [
        ("sede=1", "sede", "seed"),
        ("cluster.shard_sise=3", "cluster.shard_sise", "shard_size"),
        ("truncate.kk=3", "truncate.kk", "k"),
        ("retriever.n_dcs=3", "retriever.n_dcs", "n_docs"),
        ("models.main.latency=3", "models.main.latency", "latency_s"),
        ("questions.pth=3", "questions.pth", "path"),
    ],
)
def test_an_unknown_key_names_its_place_and_the_nearest_known_one(override, key, nearest):
    assert f"unknown key {key} (did you mean '{nearest}'?)" in refused(override)


@pytest.mark.parametrize("key", ["judge.max_turns", "extract.min_similarity"])
def test_a_key_of_another_part_is_said_to_be_one(key):
    assert refused(f"{key}=1") == f"small.yaml: unknown key {key} (a key of another part)"


def test_an_unknown_key_that_resembles_nothing_has_no_suggestion():
    assert refused("qqqqzzzz=1") == "small.yaml: unknown key qqqqzzzz"


@pytest.mark.parametrize(
    ("override", "key", "found"),
    [
        ("cluster.runners=many", "cluster.runners", "found 'many'"),
        ("cluster.runners=0", "cluster.runners", "found 0"),
        ("models.main.sufficient_rate=1.5", "models.main.sufficient_rate", "found 1.5"),
        ("seed=~", "seed", "found None"),
        ("questions.path=5", "questions.path", "found 5"),
        ("retrieve.dedup=both", "retrieve.dedup", "found 'both'"),
        ("name='no spaces'", "name", "found 'no spaces'"),
    ],
)
def test_a_wrong_value_names_the_key_and_what_was_found(override, key, found):
    message = refused(override)
    assert message.startswith(f"small.yaml: {key}: ")
    assert message.endswith(found)


def test_a_missing_key_is_named():
    assert refused(text=SMALL.replace("name: small", "")) == "small.yaml: name: field required"
    assert "questions.path: field required" in refused(text=SMALL.replace("path: q.jsonl", ""))


def test_an_unknown_kind_lists_the_known_ones():
    message = refused("loop.kind=s2gg")
    assert message.startswith("small.yaml: loop: ")
    for known in ("'s2gg'", "'s2g'", "'single'", "'fixed_rounds'"):
        assert known in message


def test_a_missing_kind_is_asked_for():
    text = SMALL.replace("{kind: synthetic}", "{n_docs: 3}")
    assert refused(text=text) == "small.yaml: retriever.kind: field required"
    assert "models.second.kind: field required" in refused("models.second.slots=2")


def test_several_faults_are_reported_together():
    message = refused("sede=1", "cluster.runners=0")
    assert "sede" in message
    assert "cluster.runners" in message


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "\tx: 1"])
def test_a_file_that_is_not_yaml(text):
    assert refused(text=text).startswith("small.yaml is not YAML: ")


@pytest.mark.parametrize("date", ["2024-12-24", "2024-13-45"])
def test_a_date_is_text(date):
    assert parse(f"name={date}").name == date


@pytest.mark.parametrize(("text", "found"), [("", "NoneType"), ("- 1\n- 2\n", "list"), ("just words", "str")])
def test_a_file_that_is_not_a_mapping(text, found):
    assert refused(text=text) == f"small.yaml must hold a mapping of keys, found {found}"


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read the configuration .*none\.yaml: No such file"):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="Is a directory"):
        load_config(tmp_path)


def test_a_file_that_is_not_utf8(tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: caf\xe9".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"cannot read the configuration .*latin\.yaml: .*utf-8"):
        load_config(path)


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_file_that_extends_another_gives_only_what_differs(write):
    write("base.yaml", SMALL + "loop: {kind: s2g, max_turns: 2, max_gaps: 3}\n")
    write("variants/one.yaml", "extends: ../base.yaml\nname: one\nloop: {max_turns: 1}\n")
    path = write("variants/two.yaml", "extends: one.yaml\nname: two\ntruncate: {kind: gapr}\n")
    config = load_config(path, ["seed=4"])
    assert (config.name, config.seed, config.truncate.kind) == ("two", 4, "gapr")
    assert config.loop == S2GConfig(max_turns=1, max_gaps=3)
    assert config.questions.path == "q.jsonl"
    assert load_config(path, ["loop.kind=fixed_rounds"]).loop == FixedRoundsConfig()


def test_files_that_extend_each_other_or_nothing_that_is_there_are_refused(write):
    one = write("one.yaml", "extends: two.yaml\n")
    write("two.yaml", "extends: one.yaml\n")
    with pytest.raises(ConfigError, match=r"two\.yaml extends one\.yaml, which extends it in turn"):
        load_config(one)
    itself = write("self.yaml", "extends: self.yaml\n")
    with pytest.raises(ConfigError, match="which extends it in turn"):
        load_config(itself)
    lost = write("lost.yaml", "extends: none.yaml\n")
    with pytest.raises(ConfigError, match=r"cannot read the configuration .*none\.yaml"):
        load_config(lost)
    base = write("list.yaml", "- 1\n")
    child = write("child.yaml", f"extends: {base.name}\n")
    with pytest.raises(ConfigError, match=r"list\.yaml must hold a mapping of keys, found list"):
        load_config(child)


@pytest.mark.parametrize("role", ["judge", "extractor", "reasoner"])
def test_a_role_of_a_model_that_is_not_there(role):
    message = refused(f"roles.{role}=big")
    assert f"roles.{role} names model 'big', but models has only ['main']" in message


def test_an_encoder_and_a_price_of_something_that_is_not_there():
    assert "extract.encoder names encoder 'main', but encoders has []" in refused("extract.kind=embedding")
    assert "cost.models prices ['big'], but models has only ['main']" in refused("cost.models.big.prompt_per_million=1")


def test_gapr_bounds_are_checked_against_each_other():
    assert "k_min 5 is above k_max 2" in refused("truncate={kind: gapr, k_min: 5, k_max: 2}")


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("name=Ünïcode-is-not-a-name",),
        ("questions.path=données/ファイル.jsonl", "judge.threshold=0.1", "seed=-3"),
        ("encoders.main.kind=hashing", "extract={kind: embedding, min_similarity: 0}", "truncate={kind: gapr}"),
        ("retriever={kind: bm25, corpus: {path: c.jsonl}, index: i, k1: 1.2}", "cost.models.main.prompt_per_million=3"),
        ("models.api={kind: openai, model: m, base_url: 'http://h/v1', requests_per_minute: 5}", "roles.judge=api"),
        ("models.gpu={kind: vllm, model: m, num_gpus: 1}", "loop={kind: single}", "extract.kind=none"),
    ],
)
def test_what_is_dumped_parses_to_the_same_tree(overrides):
    if overrides and "Ünïcode" in overrides[0]:
        assert "name: string should match pattern" in refused(*overrides)
        return
    config = parse(*overrides)
    text = dump_config(config)
    assert parse_config(text, "dumped") == config
    assert dump_config(parse_config(text, "dumped")) == text


def test_the_dump_writes_every_default_out_and_keeps_words_readable():
    values = yaml.safe_load(dump_config(parse("questions.path=données.jsonl")))
    assert set(values) == set(ExperimentConfig.model_fields)
    assert values["cluster"]["shard_size"] == 32
    assert "données.jsonl" in dump_config(parse("questions.path=données.jsonl"))


def test_parsing_does_not_change_its_overrides_or_text():
    overrides = ["seed=3"]
    parse(*overrides)
    assert overrides == ["seed=3"]
    assert parse().seed == 0


def test_the_tree_is_frozen():
    config = parse()
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 5
