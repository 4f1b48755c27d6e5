"""The real clients: openai in the default tests where it is installed, the others under the marker `engine`."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

USER = [{"role": "user", "content": "Where?"}]


class Person(BaseModel):
    """A person."""

    name: str
    age: int


@pytest.fixture(scope="module")
def client(server):
    openai = pytest.importorskip("openai")
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=60)


def test_openai_completions(client):
    answer = client.completions.create(model="tiny", prompt="x.re", max_tokens=20, extra_body={"regex": "turn|place"})
    assert answer.choices[0].text in ("turn", "place")
    stream = client.completions.create(
        model="tiny", prompt="x.re", max_tokens=20, stream=True, extra_body={"regex": "turn"}
    )
    assert "".join(chunk.choices[0].text for chunk in stream) == "turn"
    assert [m.id for m in client.models.list()] == ["tiny"]


def test_openai_parse(client):
    class Answer(BaseModel):
        city: str
        ok: bool

    answer = client.beta.chat.completions.parse(
        model="tiny", messages=USER, response_format=Answer, max_tokens=400, temperature=0.2, seed=1,
        logit_bias=end_of_string(),
    )  # fmt: skip
    assert isinstance(answer.choices[0].message.parsed, Answer)


def end_of_string():
    """Return a bias for the quote, so that a random model ends its strings."""
    from server_toy import toy_tokenizer

    return {str(i): 30 for token, i in toy_tokenizer().get_vocab().items() if token == '"'}


def test_openai_stream_helper(client):
    class Answer(BaseModel):
        ok: bool

    kinds = []
    options = {"model": "tiny", "messages": USER, "response_format": Answer, "max_tokens": 60}
    with client.beta.chat.completions.stream(**options) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "content.delta" in kinds and "content.done" in kinds
    assert isinstance(final.choices[0].message.parsed, Answer)


def test_openai_tools(client):
    openai = pytest.importorskip("openai")

    class Weather(BaseModel):
        warm: bool

    answer = client.beta.chat.completions.parse(
        model="tiny", messages=USER, tools=[openai.pydantic_function_tool(Weather)], tool_choice="required",
        parallel_tool_calls=False, max_tokens=200, seed=1,
    )  # fmt: skip
    assert isinstance(answer.choices[0].message.tool_calls[0].function.parsed_arguments, Weather)


def test_openai_responses(client):
    class Answer(BaseModel):
        ok: bool

    answer = client.responses.parse(model="tiny", input="Where?", text_format=Answer)
    assert isinstance(answer.output_parsed, Answer)
    with client.responses.stream(model="tiny", input="Where?", text_format=Answer) as stream:
        kinds = [event.type for event in stream]
        assert isinstance(stream.get_final_response().output_parsed, Answer)
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"


def test_openai_errors(client):
    openai = pytest.importorskip("openai")
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model="tiny", prompt="a", extra_body={"regex": "("})
    assert caught.value.code == "invalid_grammar" and caught.value.param == "regex"


class Closed(BaseModel):
    """An answer that a random model can write."""

    model_config = {"extra": "forbid"}
    ok: bool


class Loose(BaseModel):
    """An answer that every JSON object is."""

    ok: bool = True


def bias(token):
    """Return a bias for a token, so that a random model writes it soon."""
    from server_toy import toy_tokenizer

    return {str(toy_tokenizer().convert_tokens_to_ids(token)): 40}


INSTRUCTOR = {
    "TOOLS": {}, "TOOLS_STRICT": {}, "JSON_SCHEMA": {}, "FUNCTIONS": {}, "RESPONSES_TOOLS": {},
    "RESPONSES_TOOLS_WITH_INBUILT_TOOLS": {}, "JSON": {"response_model": Loose, "logit_bias": "}"},
    "MD_JSON": {"extra_body": {"guided_choice": ['```json\n{"ok": true}\n```']}},  # it sends no constraint itself
}  # fmt: skip


@pytest.mark.engine
@pytest.mark.parametrize("mode", INSTRUCTOR)
def test_instructor(client, mode):
    instructor = pytest.importorskip("instructor")
    options = {"response_model": Closed, "max_tokens": 300} | INSTRUCTOR[mode]
    if "RESPONSES" in mode:
        options["max_output_tokens"] = options.pop("max_tokens")
    if "logit_bias" in options:
        options["logit_bias"] = bias(options["logit_bias"])
    made = instructor.from_openai(client, mode=getattr(instructor.Mode, mode))
    answer = made.chat.completions.create(model="tiny", messages=USER, max_retries=0, **options)
    assert isinstance(answer, options["response_model"])


@pytest.mark.engine
def test_instructor_streams_and_several(client):
    from collections.abc import Iterable

    instructor = pytest.importorskip("instructor")
    options = {"model": "tiny", "messages": USER, "max_retries": 0, "max_tokens": 400}
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        made = instructor.from_openai(client, mode=mode)
        *_, last = made.chat.completions.create_partial(response_model=Closed, **options)
        assert isinstance(last.ok, bool)
        several = made.chat.completions.create_iterable(response_model=Closed, **options, logit_bias=bias("]"))
        assert all(isinstance(each, Closed) for each in several)
    made = instructor.from_openai(client, mode=instructor.Mode.PARALLEL_TOOLS)
    extra = {"tool_choice": "required", "parallel_tool_calls": False}  # it leaves the choice to the model
    several = made.chat.completions.create(response_model=Iterable[Closed], extra_body=extra, **options)
    assert isinstance(next(iter(several)), Closed)


@pytest.mark.engine
def test_langchain(server):
    lc = pytest.importorskip("langchain_openai")

    model = lc.ChatOpenAI(model="tiny", base_url=server.url + "/v1", api_key="none", max_tokens=300, max_retries=0)
    for method in ("json_schema", "function_calling"):
        assert isinstance(model.with_structured_output(Closed, method=method).invoke("Where?"), Closed)
    ended = model.bind(logit_bias=bias("}"))
    assert isinstance(json.loads(ended.bind(response_format={"type": "json_object"}).invoke("Where?").content), dict)
    called = model.bind_tools([Closed], tool_choice="any").invoke("Where?")
    assert called.tool_calls[0]["name"] == "Closed"
    assert "".join(chunk.content for chunk in model.bind(extra_body={"regex": "ab{3}"}).stream("Where?")) == "abbb"
    spoken = lc.ChatOpenAI(model="tiny", base_url=server.url + "/v1", api_key="none", use_responses_api=True)
    assert isinstance(spoken.with_structured_output(Closed, method="json_schema").invoke("Where?"), Closed)
    plain = lc.OpenAI(model="tiny", base_url=server.url + "/v1", api_key="none", max_tokens=4, max_retries=0)
    assert isinstance(plain.invoke("The comp"), str) and all(isinstance(t, str) for t in plain.stream("The comp"))


@pytest.mark.engine
def test_litellm(server):
    litellm = pytest.importorskip("litellm")

    class Answer(BaseModel):
        ok: bool

    common = {"api_base": server.url + "/v1", "api_key": "none", "max_tokens": 60}
    for provider in ("openai", "hosted_vllm", "custom_openai"):
        answer = litellm.completion(model=f"{provider}/tiny", messages=USER, response_format=Answer, **common)
        assert isinstance(json.loads(answer.choices[0].message.content)["ok"], bool)
    prefilled = [*USER, {"role": "assistant", "content": '{"ok": t', "prefix": True}]
    answer = litellm.completion(model="openai/tiny", messages=prefilled, response_format=Answer, **common)
    assert json.loads('{"ok": t' + answer.choices[0].message.content) == {"ok": True}
    extra = {"structured_outputs": {"regex": "ab{3}"}}
    parts = litellm.completion(model="hosted_vllm/tiny", messages=USER, stream=True, extra_body=extra, **common)
    assert "".join(part.choices[0].delta.content or "" for part in parts) == "abbb"
    text = litellm.text_completion(
        model="text-completion-openai/tiny", prompt="x.re", extra_body={"regex": "turn"}, **common
    )
    assert text.choices[0].text == "turn"
