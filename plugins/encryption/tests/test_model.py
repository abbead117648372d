"""An encrypted model in a repository of a server."""

from core_encryption.encrypt import encrypt_model
from core_encryption.format import new_key


async def test_an_encrypted_model_serves_and_leaves_nothing(
    folder, other, started, config, monkeypatch, refusal
):
    monkeypatch.setenv("CORE_MODEL_KEY", new_key())
    encrypt_model(folder.model("m", config=config, text="2"), other.path / "m")
    manager = await started(model_repository=[str(other.path)])

    await manager.load("m", {})

    directory = manager.resolve("m").directory
    assert await manager.factor() == 2
    await manager.unload("m")
    await manager.settled()
    assert not directory.exists()
    monkeypatch.setenv("CORE_MODEL_KEY", new_key())
    assert "encrypted with another key" in (await refusal(manager.load("m", {}))).message
