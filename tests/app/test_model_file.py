"""Model files: what is read back predicts the same; what is damaged is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from blockl0 import L0Classifier, L0Regressor, L0RegressorCV
from blockl0.app.model_file import FORMAT_VERSION, ModelFileError, load_model, save_model
from blockl0.files import write_whole


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 9))
    return X, X[:, 2] - 2.0 * X[:, 5] + 0.3 * rng.standard_normal(60) + 4.0


def models(X, y):
    """One of every kind."""
    labels = np.array(["no", "yes"])[(y > 4.0).astype(int)]
    three = np.digitize(y, [3.0, 5.0]) * 10
    return {
        "squared": (L0Regressor(2, random_state=0), y),
        "chosen": (L0RegressorCV(3, rule="bic", random_state=0), y),
        "none": (L0Regressor(0), y),
        "huber": (L0Regressor(2, loss="huber", random_state=0), y),
        "poisson": (L0Regressor(2, loss="poisson", random_state=0), np.round(np.exp(y / 4))),
        "gamma": (L0Regressor(2, loss="gamma", random_state=0), np.exp(y / 4)),
        "tweedie": (L0Regressor(2, loss="tweedie:1.7", random_state=0), np.round(np.exp(y / 4))),
        "logistic": (L0Classifier(2, effort="fast", random_state=0), labels),
        "truth": (L0Classifier(2, effort="fast", random_state=0), y > 4.0),
        "hinge": (L0Classifier(2, loss="squared_hinge", effort="fast", random_state=0), labels),
        "softmax": (L0Classifier(2, effort="fast", random_state=0), three),
    }


KINDS = tuple(models(np.zeros((3, 6)), np.zeros(3)))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_loaded_predicts_the_same(tmp_path, data, kind):
    X, y = data
    model, target = models(X, y)[kind]
    model.fit(X, target)
    loaded = load_model(save_model(model, tmp_path / "m.json", metadata={"seed": 0}))
    expected = model.predict(X)
    assert loaded.predict(X).dtype == expected.dtype
    if expected.dtype.kind == "f":
        # sums of fewer columns; predictions near zero keep their absolute digits only
        close = {"rtol": 1e-13, "atol": 1e-13}
        np.testing.assert_allclose(loaded.predict(X), expected, **close)
        np.testing.assert_allclose(loaded.predict(sp.csr_array(X)), expected, **close)
    else:
        np.testing.assert_array_equal(loaded.predict(X), expected)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=1e-13)
    else:
        with pytest.raises(ValueError, match="gives no probabilities"):
            loaded.predict_proba(X)
    np.testing.assert_array_equal(loaded.index, model.support_)
    assert loaded.metadata["seed"] == 0
    if model.n_nonzero_:
        plain = loaded.to_sklearn()
        names = plain.feature_names_in_
        assert list(names) == [f"x{j}" for j in model.support_]
        del plain.feature_names_in_
        again = plain.predict(X[:, model.support_])
        assert np.all(again == expected) or np.allclose(again.astype(float), expected.astype(float))


def test_only_nonzero_coefficients_are_stored(tmp_path, data):
    X, y = data
    path = save_model(L0Regressor(2, random_state=0).fit(X, y), tmp_path / "m.json", target="t")
    document = json.loads(path.read_text(encoding="utf-8"))
    assert [entry["index"] for entry in document["features"]] == [2, 5]
    assert document["format"] == "blockl0-model" and document["target"] == "t"
    assert document["format_version"] == 1 <= FORMAT_VERSION  # the lowest that can read it


def test_several_targets_are_stored_and_predicted(tmp_path, data):
    X, y = data
    both = np.column_stack([y, X[:, 0] - y])
    model = L0Regressor(2, random_state=0).fit(X, both)
    path = save_model(model, tmp_path / "m.json", target=("y", "z"))
    assert json.loads(path.read_text(encoding="utf-8"))["format_version"] == 2
    loaded = load_model(path)
    assert (loaded.targets, loaded.target) == (("y", "z"), "y, z")
    np.testing.assert_allclose(loaded.predict(X), model.predict(X), rtol=1e-12)
    np.testing.assert_array_equal(loaded.to_sklearn().coef_, loaded.coef)
    unnamed = load_model(save_model(model, tmp_path / "n.json"))
    assert unnamed.targets == ("y0", "y1")
    with pytest.raises(ValueError, match="must name 2 targets"):
        save_model(model, tmp_path / "o.json", target=["a", "b", "c"])


def test_frames_by_name(tmp_path, data):
    pd = pytest.importorskip("pandas")
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdefghi"))
    model = L0Regressor(2, random_state=0).fit(frame, y)
    loaded = load_model(save_model(model, tmp_path / "m.json"))
    assert loaded.feature_names == ("c", "f")
    np.testing.assert_allclose(loaded.predict(frame[["f", "a", "c"]]), model.predict(frame))
    with pytest.raises(ValueError, match=r"1 column \(c\) of the model"):
        loaded.predict(frame.drop(columns="c"))
    with pytest.raises(
        ValueError, match=r"X must have 9 columns, as in the fit, got shape \(60, 8\)"
    ):
        loaded.predict(X[:, 1:])


def rewritten(path, change):
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


DAMAGE = {
    "newer": (lambda d: d.update(format_version=99), r"newer blockl0 \(.*, format 99\).*upgrade"),
    "other": (lambda d: d.update(format="pickle"), r"is not a model"),
    "version": (lambda d: d.update(format_version="one"), r"damaged: its format version is 'one'"),
    "number": (lambda d: d["features"][0].update(coef=[7.0]), r"checksum does not fit"),
    "key": (lambda d: d.pop("intercept"), r"checksum does not fit"),
    "no checksum": (lambda d: d.pop("checksum"), r"checksum does not fit"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_files_are_refused(tmp_path, data, case):
    change, pattern = DAMAGE[case]
    path = save_model(L0Regressor(2, random_state=0).fit(*data), tmp_path / "m.json")
    rewritten(path, change)
    with pytest.raises(ModelFileError, match=pattern):
        load_model(path)


@pytest.mark.parametrize("content", [b"", b"{", b"\x80\x04\x95", b"[1, 2]", b"null"])
def test_what_is_no_model_is_refused(tmp_path, content):
    (tmp_path / "m.json").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"damaged, or no model|is not a model"):
        load_model(tmp_path / "m.json")


def test_a_model_cut_short_is_refused(tmp_path, data):
    path = save_model(L0Regressor(2, random_state=0).fit(*data), tmp_path / "m.json")
    whole = path.read_text(encoding="utf-8")
    for share in (0.3, 0.9):
        path.write_text(whole[: int(share * len(whole))], encoding="utf-8")
        with pytest.raises(ModelFileError, match="damaged"):
            load_model(path)


def test_nothing_is_overwritten_unless_asked(tmp_path, data):
    model = L0Regressor(2, random_state=0).fit(*data)
    path = save_model(model, tmp_path / "m.json")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="--force"):
        save_model(L0Regressor(1, random_state=0).fit(*data), path)
    assert path.read_bytes() == before
    save_model(L0Regressor(1, random_state=0).fit(*data), path, force=True)
    assert len(load_model(path).features) == 1


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "a.txt", "first")

    def fail(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="no space"):
            write_whole(path, "second", force=True)
    assert path.read_text(encoding="utf-8") == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    with pytest.raises(FileNotFoundError, match="no folder"):
        write_whole(tmp_path / "none" / "a.txt", "")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_whole(tmp_path, "", force=True)


def test_what_json_cannot_hold_is_refused(tmp_path, data):
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_model(
            L0Regressor(2, random_state=0).fit(*data), tmp_path / "m.json",
            metadata={"score": float("nan")},
        )  # fmt: skip
    assert not list(tmp_path.iterdir())
