"""Emulators of the three clouds: real servers on loopback that speak their protocols.

Each has put, delete, url, environment (of a server that may read it), wrong (of one that may not), `fetched`
(the objects that were fetched, of the requests that its recorder has seen) and close.
"""

import base64
import json
import logging
import os
import shutil
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

from .recorder import Recorder

BUCKET = "shelf"


class S3:
    """moto's server, with its own Identity and Access Management."""

    scheme = "s3"

    def __init__(self):
        import boto3
        from moto.server import ThreadedMotoServer

        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self._port = port
        # One process has one moto, shared by all its users.
        self._control("reset-auth", b"inf")
        self._control("reset", b"")
        self.recorder = Recorder(port)
        made = {
            "endpoint_url": f"http://{host}:{port}",
            "region_name": "us-east-1",
            "aws_access_key_id": "root",
            "aws_secret_access_key": "root",
        }
        people = boto3.client("iam", **made)
        people.create_user(UserName="server")
        rights = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        people.put_user_policy(
            UserName="server",
            PolicyName="read",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [rights]}),
        )
        key = people.create_access_key(UserName="server")["AccessKey"]
        made["aws_access_key_id"] = key["AccessKeyId"]
        made["aws_secret_access_key"] = key["SecretAccessKey"]
        self._client = boto3.client("s3", **made)
        self._client.create_bucket(Bucket=BUCKET)
        # From here on signatures and rights are checked.
        self._control("reset-auth", b"0")
        self.environment = {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        self.wrong = {**self.environment, "AWS_SECRET_ACCESS_KEY": "wrong"}

    def _control(self, what, data):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/moto-api/{what}",
            data=data,
            headers={"Content-Type": "text/plain"},
        )
        urllib.request.urlopen(request).close()

    def url(self, path, bucket=BUCKET):
        return f"s3://127.0.0.1:{self.recorder.port}/{bucket}/{path}"

    def put(self, key, content):
        self._client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def put_in_parts(self, key, content):
        """Upload in parts, as clients do with large objects."""
        which = {"Bucket": BUCKET, "Key": key}
        which["UploadId"] = self._client.create_multipart_upload(**which)["UploadId"]
        part = self._client.upload_part(**which, PartNumber=1, Body=content)
        parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
        self._client.complete_multipart_upload(**which, MultipartUpload={"Parts": parts})

    def delete(self, key):
        self._client.delete_object(Bucket=BUCKET, Key=key)

    def fetched(self):
        head = f"GET /{BUCKET}/"
        return [
            urllib.parse.unquote(each.removeprefix(head).partition("?")[0])
            for each in self.recorder.requests
            if each.startswith(head) and "list-type" not in each
        ]

    def close(self):
        self.recorder.close()
        self._server.stop()


class Google:
    """gcp-storage-emulator; it checks no credentials: wrong ones get no token."""

    scheme = "gs"

    def __init__(self):
        from gcp_storage_emulator.server import create_server

        self._server = create_server("127.0.0.1", 0, in_memory=True, default_bucket=BUCKET)
        self._server.start()
        while self._server._api._httpd is None:
            time.sleep(0.01)
        self._port = self._server._api._httpd.server_address[1]
        self.recorder = Recorder(self._port)
        self.environment = {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{self.recorder.port}"}
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name, "account.json")
        path.write_text(json.dumps(_service_account(f"http://127.0.0.1:{self._port}/token")))
        self.wrong = {**self.environment, "GOOGLE_APPLICATION_CREDENTIALS": str(path)}

    def url(self, path, bucket=BUCKET):
        return f"gs://{bucket}/{path}"

    def put(self, key, content):
        name = urllib.parse.quote(key, safe="")
        self._call(
            f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}",
            data=content,
            headers={"Content-Type": "application/octet-stream"},
        )

    def delete(self, key):
        name = urllib.parse.quote(key, safe="")
        self._call(f"/storage/v1/b/{BUCKET}/o/{name}", method="DELETE")

    def _call(self, path, **how):
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", **how)
        urllib.request.urlopen(request).close()

    def fetched(self):
        found = []
        for each in self.recorder.requests:
            path, _, query = each.partition("?")
            if "/o/" in path and "alt=media" in query:
                found.append(urllib.parse.unquote(path.partition("/o/")[2]))
        return found

    def close(self):
        self.recorder.close()
        self._server.stop()
        self._folder.cleanup()


def _service_account(token_uri):
    """Return invalid credentials in the form of Google's files."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return {
        "type": "service_account",
        "client_email": "nobody@nowhere",
        "private_key": text.decode(),
        "private_key_id": "1",
        "token_uri": token_uri,
    }


class Azure:
    """azurite, a program for node."""

    scheme = "as"
    program = "azurite-blob"
    _ACCOUNT = "devstoreaccount1"

    def __init__(self):
        from azure.storage.blob import BlobServiceClient

        key = base64.b64encode(b"a key of this test").decode()
        account = {"AZURITE_ACCOUNTS": f"{self._ACCOUNT}:{key}"}
        self._process = subprocess.Popen(
            [
                shutil.which(self.program),
                *("--blobPort", "0", "--inMemoryPersistence", "--silent"),
                *("--skipApiVersionCheck", "--disableTelemetry"),
            ],
            stdout=subprocess.PIPE,
            env={**os.environ, **account},
            text=True,
        )
        said = ""
        while "successfully listens on" not in said:
            said = self._process.stdout.readline()
            assert said, "azurite did not start"
        port = int(said.rpartition(":")[2])
        self.recorder = Recorder(port)
        service = BlobServiceClient(
            f"http://127.0.0.1:{port}/{self._ACCOUNT}",
            credential={"account_name": self._ACCOUNT, "account_key": key},
        )
        self._container = service.create_container(BUCKET)
        self.environment = {"AZURE_STORAGE_ACCOUNT": self._ACCOUNT, "AZURE_STORAGE_KEY": key}
        wrong = base64.b64encode(b"another key").decode()
        self.wrong = {**self.environment, "AZURE_STORAGE_KEY": wrong}

    def url(self, path, bucket=BUCKET):
        return f"as://http://127.0.0.1:{self.recorder.port}/{self._ACCOUNT}/{bucket}/{path}"

    def put(self, key, content):
        self._container.upload_blob(key, content, overwrite=True)

    def delete(self, key):
        self._container.delete_blob(key)

    def fetched(self):
        head = f"GET /{self._ACCOUNT}/{BUCKET}/"
        return [
            urllib.parse.unquote(each.removeprefix(head).partition("?")[0])
            for each in self.recorder.requests
            if each.startswith(head)
        ]

    def close(self):
        self.recorder.close()
        self._process.terminate()
        self._process.wait(10)
        self._process.stdout.close()
