"""Credentials: Triton's variables, or Triton's file."""

import json

import pytest
from core_cloud.address import place_of
from core_cloud.credentials import FILE, credentials_of, source_of

from core.errors import CoreError

S3 = place_of("s3://bucket/models")


@pytest.fixture
def written(tmp_path):
    """A function (content) that writes a file of credentials, and returns an environment that names it."""

    def write(content):
        path = tmp_path / "credentials.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return {FILE: str(path), "AWS_ACCESS_KEY_ID": "of the environment"}

    return write


@pytest.mark.parametrize(
    ("url", "variable", "member"),
    [
        ("s3://b", "AWS_ACCESS_KEY_ID", "key_id"),
        ("s3://b", "AWS_SECRET_ACCESS_KEY", "secret_key"),
        ("s3://b", "AWS_SESSION_TOKEN", "session_token"),
        ("s3://b", "AWS_DEFAULT_REGION", "region"),
        ("s3://b", "AWS_PROFILE", "profile"),
        ("s3://b", "AWS_S3_ADDRESSING_STYLE", "addressing_style"),
        ("gs://b", "GOOGLE_APPLICATION_CREDENTIALS", "path"),
        ("as://a/b", "AZURE_STORAGE_ACCOUNT", "account_str"),
        ("as://a/b", "AZURE_STORAGE_KEY", "account_key"),
        ("as://a/b", "AZURE_STORAGE_AUTH_TYPE", "auth_type"),
        ("as://a/b", "AZURE_STORAGE_CLIENT_ID", "client_id"),
    ],
)
def test_variables_are_those_of_triton(url, variable, member):
    assert credentials_of(place_of(url), {variable: "text"}) == {member: "text"}


def test_nothing_is_given_where_nothing_is_set():
    assert credentials_of(S3, {"AWS_PROFILE": ""}) == {}
    assert credentials_of(place_of("memory://m"), {FILE: "/nowhere"}) == {}


def test_the_longest_prefix_of_the_url_counts(written):
    environment = written(
        {
            "s3": {
                "": {"key_id": "any"},
                "s3://bucket": {"key_id": "bucket"},
                "s3://bucket/models": {"key_id": "models", "secret_key": "s"},
                "s3://bucket/models/other": {"key_id": "other"},
            }
        }
    )

    assert credentials_of(S3, environment) == {"key_id": "models", "secret_key": "s"}
    assert credentials_of(place_of("s3://elsewhere"), environment) == {"key_id": "any"}


def test_an_entry_of_google_is_a_path(written):
    environment = written({"gs": {"": "/any.json", "gs://b": "/b.json"}})

    assert credentials_of(place_of("gs://b/m"), environment) == {"path": "/b.json"}


def test_a_file_that_changes_is_seen(written):
    first = credentials_of(S3, written({"s3": {"": {"key_id": "one"}}}))
    second = credentials_of(S3, written({"s3": {"": {"key_id": "two"}}}))

    assert (first["key_id"], second["key_id"]) == ("one", "two")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "it is no JSON"),
        ([], "it is no JSON object"),
        ({}, "no prefix of 's3://bucket/models' (it has nothing"),
        ({"s3": {"s3://other": {}}}, '(it has "s3://other"'),
        ({"s3": []}, "no object of prefixes"),
        ({"s3": {"": "text"}}, "not made of texts"),
        ({"s3": {"": {"key_id": 5}}}, "not made of texts"),
        ({"s3": {"": {"keyid": "x"}}}, 'no member "keyid"; it has key_id, secret_key'),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(written, content, text):
    environment = written(content)

    with pytest.raises(CoreError) as refused:
        credentials_of(S3, environment)

    assert text in refused.value.message
    assert environment[FILE] in refused.value.message


def test_a_file_that_is_missing_is_refused():
    with pytest.raises(CoreError, match="cannot be read"):
        credentials_of(S3, {FILE: "/nowhere/credentials.json"})


def test_an_error_can_name_the_source_of_credentials():
    assert "AWS_SECRET_ACCESS_KEY" in source_of(S3, {})
    assert "/c.json" in source_of(S3, {FILE: "/c.json"})
