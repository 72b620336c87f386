"""Figures of random tables by scipy and statsmodels, one JSON object per line, for reference.rs."""

import json
import math
import random

import numpy as np
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import proportion_confint

random.seed(20260101)


def emit(kind, **values):
    print(json.dumps({"kind": kind, **values}))


for _ in range(300):
    n = random.randint(1, 400)
    passed = random.randint(0, n)
    level = random.choice([0.8, 0.9, 0.95, 0.99])
    low, high = proportion_confint(passed, n, alpha=1 - level, method="wilson")
    emit("wilson", passed=passed, n=n, level=level, low=float(low), high=float(high))

for _ in range(300):
    a, b = random.randint(0, 60), random.randint(0, 60)
    p = mcnemar([[random.randint(0, 50), a], [b, random.randint(0, 50)]], exact=True).pvalue
    emit("mcnemar", a=a, b=b, p=float(p))

for _ in range(60):
    attempts = [random.randint(1, 4) for _ in range(random.randint(2, 12))]
    differences = [random.randint(-k, k) for k in attempts]
    rates = np.array([d / k for d, k in zip(differences, attempts)])
    found = stats.permutation_test(
        (rates, np.zeros_like(rates)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
        alternative="two-sided",
    )
    emit("permutation", attempts=attempts, differences=differences, p=float(found.pvalue))

for _ in range(200):
    n = random.randint(1, 20)
    c, k = random.randint(0, n), random.randint(1, n)
    at = 1 - math.comb(n - c, k) / math.comb(n, k)
    emit("pass", n=n, c=c, k=k, at=at, hat=math.comb(c, k) / math.comb(n, k))

for _ in range(20):
    differences = [random.choice([-1.0, 0.0, 0.0, 0.5, 1.0]) for _ in range(random.randint(20, 80))]
    if len(set(differences)) < 2:
        continue
    found = stats.bootstrap(
        (np.array(differences),), np.mean, n_resamples=20000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    emit("bootstrap", differences=differences, low=float(found.low), high=float(found.high))

for _ in range(50):
    d = random.uniform(0.02, 0.2)
    variance = random.uniform(d, 0.6)
    n = NormalIndPower(ddof=0).solve_power(effect_size=d / math.sqrt(variance), alpha=0.05, power=0.8, ratio=0)
    emit("power", difference=d, variance=variance, n=float(n))
