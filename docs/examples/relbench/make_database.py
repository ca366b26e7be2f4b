"""Makes a small shop's database in RelBench's format, with a signal that only its structure carries.

    python docs/examples/relbench/make_database.py shop

Customers buy products in rings: each buys the products i and i + 1 of its ring, so every customer has two
purchases and every product two. Some rings are short (two customers, two products), some long (four and
four). A long ring covers a short one twice, so to message passing that knows rows by their columns alone
both are the same; columns and days are drawn alike everywhere. Scouts buy four products of four rings, one of
them short.

- ``refund`` (entity task): will a customer ask for a refund within a week? Those of short rings do.
- ``again`` (recommendation task): which product will a scout buy again? That of the short ring.

Both rules have exceptions, a share ``noise`` of all. Every week has customers and products of its own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from relbench.manifest import DatasetManifest, TableSpec, TaskManifest

START = np.datetime64("2024-01-01", "ns")
SHORT, LONG = 2, 4  # customers of a ring
TABLES = {
    "customer": TableSpec("customer_id", "joined"),
    "product": TableSpec("product_id", "listed"),
    "purchase": TableSpec("purchase_id", "time", {"customer_id": "customer", "product_id": "product"}),
    "refund": TableSpec("refund_id", "time", {"customer_id": "customer"}),
}
REFUND = """
SELECT t.timestamp, c.customer_id, CAST(EXISTS (
    SELECT 1 FROM refund r WHERE r.customer_id = c.customer_id
    AND r.time > t.timestamp AND r.time <= t.timestamp + INTERVAL '{timedelta}') AS INTEGER) AS refunds
FROM timestamps t JOIN customer c
ON c.joined <= t.timestamp AND c.joined > t.timestamp - INTERVAL '{timedelta}'
WHERE (SELECT COUNT(*) FROM purchase p WHERE p.customer_id = c.customer_id AND p.time <= t.timestamp) <= 2
"""
AGAIN = """
SELECT t.timestamp, p.customer_id, LIST(DISTINCT p.product_id) AS product_id
FROM timestamps t
JOIN purchase p ON p.time > t.timestamp AND p.time <= t.timestamp + INTERVAL '{timedelta}'
JOIN customer c ON c.customer_id = p.customer_id AND c.joined <= t.timestamp
GROUP BY t.timestamp, p.customer_id
"""


class Week:
    """The rows of one week; numbers of customers and products count from the first of the database."""

    def __init__(self, number: int, customer: int, product: int, rng: np.random.Generator) -> None:
        self.number, self.customers, self.products, self.rng = number, customer, product, rng
        self.first = customer, product
        self.purchases: list[tuple[int, int, int]] = []  # customer, product, day
        self.refunds: list[tuple[int, int]] = []  # customer, day

    def buy(self, customer: int, product: int, later: bool = False) -> None:
        """On a day of this week or, later, of the next."""
        self.purchases.append((customer, product, 7 * (self.number + later) + int(self.rng.integers(1, 8))))

    def ring(self, size: int, noise: float) -> list[int]:
        """A ring of new customers and products; the even products, which scouts buy."""
        for i in range(size):
            for j in (i, (i + 1) % size):
                self.buy(self.customers + i, self.products + j)
            if (size == SHORT) != (self.rng.random() < noise):
                self.refunds.append(
                    (self.customers + i, 7 * (self.number + 1) + int(self.rng.integers(1, 8)))
                )
        even = list(range(self.products, self.products + size, 2))
        self.customers, self.products = self.customers + size, self.products + size
        return even

    def fill(self, groups: int, noise: float) -> None:
        """Two short and three long rings a group, and two scouts with four products each."""
        short = [product for _ in range(2 * groups) for product in self.ring(SHORT, noise)]
        long = [product for _ in range(3 * groups) for product in self.ring(LONG, noise)]
        for one, others in zip(short, self.rng.permutation(long).reshape(-1, 3).tolist(), strict=True):
            for product in (one, *others):
                self.buy(self.customers, product)
            exception = self.rng.random() < noise
            self.buy(self.customers, int(self.rng.choice(others)) if exception else one, later=True)
            self.customers += 1


def tables(weeks: int, groups: int, noise: float, seed: int) -> dict[str, pd.DataFrame]:
    """The four tables; rows in the order of time, numbered from 0, as RelBench wants them."""
    rng = np.random.default_rng(seed)
    made: list[Week] = []
    for number in range(weeks + 1):  # the last one is after the test's seed time
        first = (made[-1].customers, made[-1].products) if made else (0, 0)
        made.append(Week(number, *first, rng))
        made[-1].fill(groups, noise)
    joined = np.concatenate([np.full(week.customers - week.first[0], 7 * week.number + 1) for week in made])
    listed = np.concatenate([np.full(week.products - week.first[1], 7 * week.number + 1) for week in made])
    purchases = pd.DataFrame(
        [row for week in made for row in week.purchases], columns=["customer_id", "product_id", "time"]
    )
    refunds = pd.DataFrame([row for week in made for row in week.refunds], columns=["customer_id", "time"])
    frames = {
        "customer": pd.DataFrame({"joined": joined, "region": rng.choice(list("NESW"), len(joined))}),
        "product": pd.DataFrame({"listed": listed, "kind": rng.choice(["book", "tea", "lamp"], len(listed))}),
        "purchase": purchases.assign(quantity=rng.integers(1, 4, len(purchases))),
        "refund": refunds.assign(reason=rng.choice(["late", "broken"], len(refunds))),
    }
    for name, spec in TABLES.items():
        # Shuffled first: the order within a day must not tell rings.
        rows = (
            frames[name]
            if name in ("customer", "product")
            else frames[name].sample(frac=1, random_state=seed)
        )
        rows = rows.sort_values(spec.time_col, kind="stable", ignore_index=True)
        rows[spec.time_col] = START + rows[spec.time_col].to_numpy() * np.timedelta64(86_400 * 10**9, "ns")
        frames[name] = rows.rename_axis(spec.pkey).reset_index()
    return frames


def main(folder: Path, weeks: int = 6, groups: int = 32, noise: float = 0.05, seed: int = 0) -> None:
    """Write the database and its two tasks."""
    (folder / "db").mkdir(parents=True, exist_ok=True)
    for name, rows in tables(weeks, groups, noise, seed).items():
        rows.to_parquet(folder / "db" / f"{name}.parquet", index=False)
    val, test = (str(START + np.timedelta64(7 * week, "D"))[:10] for week in (weeks - 1, weeks))
    DatasetManifest("rings", val, test, "Rings of customers and products", TABLES).save(
        folder / "manifest.yaml"
    )
    shared = {"kind": "forecast", "time_col": "timestamp", "timedelta": "7 days"}
    entity = {"entity_table": "customer", "entity_col": "customer_id", "target_col": "refunds"}
    ends = {"src_entity_table": "customer", "src_entity_col": "customer_id", "eval_k": 1}
    ends |= {"dst_entity_table": "product", "dst_entity_col": "product_id"}
    for task in (
        TaskManifest("refund", task_type="binary_classification", sql=REFUND, **shared, **entity),
        TaskManifest("again", task_type="recommendation", sql=AGAIN, **shared, **ends),
    ):
        task.validate()
        task.save(folder / "tasks" / task.name / "manifest.yaml")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weeks", type=int, default=6, help="weeks up to the test's seed time")
    parser.add_argument("--groups", type=int, default=32, help="of 18 customers, a week")
    parser.add_argument("--noise", type=float, default=0.05, help="share of exceptions to the rules")
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
