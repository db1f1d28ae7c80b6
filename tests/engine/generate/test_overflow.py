import pytest

from engine.errors import PromptTooLong
from engine.generate.overflow import overflow

# (server, message, prompt tokens, longest prompt) for a reply of 1000 tokens and a prompt of 40,000 bytes.
WORDINGS = [
    (
        "openai and vllm before 0.10",
        "This model's maximum context length is 4097 tokens. However, you requested 4120 tokens (3120 in the messages, "
        "1000 in the completion). Please reduce the length of the messages or completion.",
        3120,
        3097,
    ),
    (
        "openai, messages alone",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens.",
        8227,
        7192,
    ),
    (
        "openai, total alone",
        "This model's maximum context length is 131072 tokens. However, you requested 351430 tokens.",
        350430,
        130072,
    ),
    (
        "openai completions",
        "This model's maximum context length is 4097 tokens, however you requested 4231 tokens (3231 in your prompt; "
        "1000 for the completion).",
        3231,
        3097,
    ),
    (
        "vllm",
        "This model's maximum context length is 4096 tokens. However, you requested 1000 output tokens and your prompt "
        "contains 3500 input tokens, for a total of 4500 tokens.",
        3500,
        3096,
    ),
    (
        "vllm, which counted no further than its limit",
        "This model's maximum context length is 4096 tokens. However, you requested 1000 output tokens and your prompt "
        "contains at least 3097 input tokens, for a total of at least 4097 tokens.",
        10000,
        3096,
    ),
    (
        "vllm, which did not count",
        "This model's maximum context length is 4096 tokens. However, your prompt contains 40000 characters (more than "
        "30960 characters, which is the upper bound for 3096 input tokens).",
        10000,
        3096,
    ),
    (
        "vllm engine",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
        5000,
        3096,
    ),
    ("sglang", "The input (61709 tokens) is longer than the model's context length (40960 tokens).", 61709, 39960),
    (
        "sglang, with the reply",
        "Requested token count exceeds the model's maximum context length of 202752 tokens. You requested a total of "
        "202941 tokens: 201941 tokens from the input messages and 1000 tokens for the completion.",
        201941,
        201752,
    ),
    (
        "sglang, memory",
        "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
        160062,
        58862,
    ),
    (
        "tgi",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3500 `inputs` tokens and "
        "1000 `max_new_tokens`",
        3500,
        3096,
    ),
    (
        "llama.cpp",
        "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        5000,
        3096,
    ),
    ("llama-cpp-python", "Requested tokens (5000) exceed context window of 4096", 4000, 3096),
    ("anthropic", "prompt is too long: 210000 tokens > 200000 maximum", 210000, 199000),
    (
        "gemini",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1200000,
        1047576,
    ),
]


@pytest.mark.parametrize(("message", "tokens", "limit"), [w[1:] for w in WORDINGS], ids=[w[0] for w in WORDINGS])
def test_wordings(message, tokens, limit):
    found = overflow(message, None, 40_000, 1000)
    assert isinstance(found, PromptTooLong)
    assert (found.tokens, found.limit) == (tokens, limit)


def test_llama_cpp_gives_numbers_beside_the_message():
    body = {"type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}
    found = overflow("the request exceeds the available context size. try increasing it", body, 40_000, 1000)
    assert (found.tokens, found.limit) == (5000, 3096)


def test_without_numbers_the_prompt_is_estimated_and_a_quarter_is_to_go():
    found = overflow("too much", {"code": "context_length_exceeded"}, 40_000, 1000)
    assert (found.tokens, found.limit) == (10_000, 7_500)


def test_a_reply_that_leaves_no_room_gives_a_limit_of_zero():
    found = overflow("prompt is too long: 900 tokens > 800 maximum", None, 4000, 1000)
    assert (found.tokens, found.limit) == (900, 0)


@pytest.mark.parametrize(
    "message",
    [
        "Invalid schema for response_format 'judge': maximum nesting is 5",
        "Rate limit reached for tokens per min. Limit: 30000, Used: 29000",
        "max_tokens must be less than 4096",
        "",
    ],
)
def test_other_errors_are_not_about_length(message):
    assert overflow(message, None, 4000, 1000) is None
