from __future__ import annotations

import gzip
from types import SimpleNamespace

import huggingface_hub
import pytest

from benchmarks import download as download_module
from tests.benchmarks.test_cli import call


def test_the_download_is_left_to_the_official_package_and_needs_a_folder(capsys, tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(download_module.shutil, "which", lambda name, path: f"/somewhere/{name}")
    monkeypatch.setattr(
        download_module.subprocess,
        "run",
        lambda command, **_: called.append(command) or SimpleNamespace(returncode=3),
    )
    code, _, err = call(capsys, "data", "alfworld", "--download")
    assert (code, "no folder is named, expected --data FOLDER" in err) == (2, True)
    code, _, err = call(capsys, "data", "alfworld", "--download", "--data", tmp_path / "new")
    assert called == [["/somewhere/alfworld-download", "--data-dir", str(tmp_path / "new")]]
    assert (code, "alfworld-download ended with code 3" in err) == (2, True)
    monkeypatch.setattr(download_module.shutil, "which", lambda name, path: None)
    code, _, err = call(capsys, "data", "alfworld", "--download", "--data", tmp_path / "new")
    assert (code, "pip install 'empg-bench[alfworld]'" in err) == (2, True)
    code, _, err = call(capsys, "data", "webshop", "--download", "--data", tmp_path / "new")
    assert (code, "webshop has no package that downloads its files" in err) == (2, True)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub that has every file it is asked for, and remembers what that was."""
    asked = []

    def fetch(dataset, file, repo_type):
        asked.append((dataset, file, repo_type))
        content = f"{file}\n".encode()
        kept = tmp_path / "hub" / f"{len(asked)}{'.gz' if file.endswith('.gz') else '.jsonl'}"
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(gzip.compress(content) if kept.suffix == ".gz" else content)
        return str(kept)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fetch)
    return asked


def test_questions_and_passages_come_from_the_hub_unpacked_and_out_of_domain_ones_without_their_train_file(
    hub, tmp_path, capsys
):
    folder = tmp_path / "data"
    code, _, err = call(capsys, "data", "deepsearch", "--download", "--data", folder)
    assert (code, "corpus.jsonl" in err) == (2, True)  # the hub's passages are none, which the check finds
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "hotpotqa_train.jsonl": "hotpotqa/train.jsonl\n",
        "hotpotqa_dev.jsonl": "hotpotqa/dev.jsonl\n",
        "2wikimultihopqa_dev.jsonl": "2wikimultihopqa/dev.jsonl\n",
        "corpus.jsonl": "wiki-18.jsonl.gz\n",
    }
    assert {(dataset, kind) for dataset, _, kind in hub} == {
        ("RUC-NLPIR/FlashRAG_datasets", "dataset"),
        ("PeterJinGo/wiki-18-corpus", "dataset"),
    }


def test_files_that_are_there_are_not_fetched_again(hub, tmp_path, capsys):
    (tmp_path / "corpus.jsonl").write_text("mine\n")
    (tmp_path / "hotpotqa_train.jsonl").write_text("mine too\n")
    call(capsys, "data", "deepsearch", "--download", "--data", tmp_path)
    assert [file for _, file, _ in hub] == ["hotpotqa/dev.jsonl", "2wikimultihopqa/dev.jsonl"]
    assert (tmp_path / "corpus.jsonl").read_text() == "mine\n"


def test_without_a_network_the_file_is_named_and_nothing_is_left_behind(tmp_path, capsys, monkeypatch):
    def fetch(dataset, file, repo_type):
        raise huggingface_hub.errors.LocalEntryNotFoundError("cannot find an appropriate cached snapshot")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fetch)
    code, _, err = call(capsys, "data", "deepsearch", "--download", "--data", tmp_path / "new")
    assert code == 2
    assert "hotpotqa/train.jsonl of RUC-NLPIR/FlashRAG_datasets cannot be fetched (cannot find" in err
    assert "into the folder by hand" in err
    assert list((tmp_path / "new").iterdir()) == []


def test_an_interrupted_copy_leaves_nothing_behind(hub, tmp_path, monkeypatch):
    source = tmp_path / "a.jsonl.gz"
    source.write_bytes(gzip.compress(b"passages" * 1000)[:20])  # cut off
    with pytest.raises(EOFError):
        download_module._place(source, tmp_path / "corpus.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl.gz"]


def test_a_data_set_that_the_hub_is_not_known_to_have_is_refused_before_anything_is_fetched(
    hub, tmp_path, capsys
):
    suite = tmp_path / "mine.toml"
    suite.write_text(
        'extends = "deepsearch"\ntitle = "mine"\n[world]\nood_datasets = ["webwalkerqa"]\n'
        '[variants.grpo]\npreset = "grpo"\nempg = false\n'
    )
    code, _, err = call(capsys, "data", suite, "--download", "--data", tmp_path / "new")
    assert (code, hub) == (2, [])
    assert "not known to have webwalkerqa, expected any of nq, triviaqa" in err
