"""URLs of repositories in cloud storage: the forms are Triton's."""

import pytest
from core_cloud.address import place_of

from core.errors import CoreError


@pytest.mark.parametrize(
    ("url", "root", "endpoint"),
    [
        ("s3://bucket", "bucket", ""),
        ("s3://bucket/", "bucket", ""),
        ("s3://bucket/path/to/models", "bucket/path/to/models", ""),
        ("s3://bucket//path///models//", "bucket/path/models", ""),
        ("s3://host:9000/bucket/models", "bucket/models", "http://host:9000"),
        ("s3://127.0.0.1:9000/bucket", "bucket", "http://127.0.0.1:9000"),
        ("s3://[::1]:9000/bucket", "bucket", "http://[::1]:9000"),
        ("s3://http://host:9000/bucket/models", "bucket/models", "http://host:9000"),
        ("s3://https://host:9000//bucket/models/", "bucket/models", "https://host:9000"),
        ("s3://https://store.example.org/bucket", "bucket", "https://store.example.org"),
        ("gs://bucket/models", "bucket/models", ""),
        ("gs://bucket", "bucket", ""),
    ],
)
def test_a_url_has_bucket_path_and_server(url, root, endpoint):
    place = place_of(url)

    assert (place.root, place.endpoint, place.url) == (root, endpoint, url)
    assert place.bucket == "bucket"


@pytest.mark.parametrize(
    ("url", "account", "root", "endpoint"),
    [
        ("as://account/container/models", "account", "container/models", ""),
        ("as://account/container", "account", "container", ""),
        ("as://account.blob.core.windows.net/container/a/b/", "account", "container/a/b", ""),
        (
            "as://http://127.0.0.1:10000/account/container/models",
            "account",
            "container/models",
            "http://127.0.0.1:10000",
        ),
    ],
)
def test_a_url_of_azure_has_account_container_and_path(url, account, root, endpoint):
    place = place_of(url)

    assert (place.account, place.root, place.endpoint) == (account, root, endpoint)


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("s3://", "s3://bucket/path"),
        ("s3:///", "s3://bucket/path"),
        ("s3://https://host:9000", "s3://https://host:port/bucket/path"),
        ("s3://host:9000/", "s3://host:port/bucket/path"),
        ("gs:///", "gs://bucket/path"),
        ("as://account", "as://account/container/path"),
        ("as://", "as://account/container/path"),
    ],
)
def test_a_url_without_a_bucket_is_refused_with_the_forms(url, form):
    with pytest.raises(CoreError) as refused:
        place_of(url)

    assert f"'{url}'" in refused.value.message
    assert form in refused.value.message


def test_a_secret_in_a_url_of_azure_is_refused_and_not_repeated():
    with pytest.raises(CoreError) as refused:
        place_of("as://account/container?sig=secret")

    assert "secret" not in refused.value.message
    assert "AZURE_STORAGE_SAS_TOKEN" in refused.value.message


def test_a_password_is_not_shown():
    assert place_of("sftp://me:secret@host/models").shown == "sftp://me:…@host/models"
    assert place_of("s3://host:9000/bucket").shown == "s3://host:9000/bucket"
