"""The paper's real data, 5000 x 10000 and sparse; needs the file, and says so loudly without it."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.io

import blockl0

PATH = os.environ.get("BLOCKL0_E2006", "")
pytestmark = pytest.mark.skipif(
    not os.path.exists(PATH), reason="set BLOCKL0_E2006 to the path of E2006_5000_10000.mat"
)


@pytest.fixture(scope="module")
def data():
    file = scipy.io.loadmat(PATH)
    return file["x"].tocsc(), file["y"].ravel()


@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 20}, {"alpha": 10.0}])
def test_dec_descends_without_a_gram_matrix(data, form):
    X, y = data
    result = blockl0.solve(X, y, method="dec", max_iter=100, random_state=0, **form)
    assert np.all(np.diff(result.history.objective) <= 1e-9 * result.history.objective[0])
    recomputed = 0.5 * np.sum((y - X @ result.coef) ** 2) + form.get("alpha", 0) * result.n_nonzero
    assert result.objective == pytest.approx(recomputed, rel=1e-10)
    assert result.n_nonzero <= form.get("n_nonzero_coefs", 10000)


def test_refit_is_better_and_certified(data):
    """40 % of the columns are zero, norms span six decades, and many are nearly collinear."""
    X, y = data
    dec = blockl0.solve(X, y, n_nonzero_coefs=20, method="dec", random_state=0)
    result = blockl0.solve(X, y, n_nonzero_coefs=20, effort="fast", random_state=0)
    assert result.objective < dec.objective
    assert result.n_nonzero == 20
    certificate = blockl0.certify(X, y, result.coef, n_nonzero_coefs=20, level=2)
    assert certificate.holds
