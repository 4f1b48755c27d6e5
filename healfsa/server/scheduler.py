"""Continuous batching: one thread that runs a model for many jobs.

In: jobs. Out: their events. Idea: between two steps of the running rows one chunk of one waiting prompt is read, so a
    long prompt delays nobody for long; rows join and leave between steps. What goes wrong in one row ends that job
    only; what goes wrong in a forward pass ends the jobs that were in it, and the thread goes on.
Cost: beside the forward pass, a mask and a choice a row.
Source: own. docs/serving.md compares it with the continuous-batching manager of transformers.
Not here: tensors (integrations), the meaning of tokens (job).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

import healfsa
from healfsa.errors import HealFSAError
from healfsa.server.covers import Covers, Drawing
from healfsa.server.errors import ApiError, broken, busy, closing, too_late, translated
from healfsa.server.job import Job, PromptScores, Sequence
from healfsa.server.metrics import Metrics
from healfsa.server.prefixes import LEAST, PrefixStore, common
from healfsa.server.sampling import Choice, describe
from healfsa.server.settings import Settings

log = logging.getLogger("healfsa.server")

Row = tuple[Job, Sequence]


class Scheduler:
    """Runs jobs on one model.

    Parameters
    ----------
    rows : healfsa.integrations.transformers.rows.Rows
        The model's batch; used by this scheduler's thread only.
    settings : Settings
    metrics : Metrics
    name : str
        The model's name, for figures.
    """

    def __init__(self, rows: Any, settings: Settings, metrics: Metrics, name: str = "model") -> None:
        self.settings = settings
        self.metrics = metrics
        self.name = name
        metrics.begin(name)
        self._rows = rows
        self._active: list[Row] = []
        self._reading: deque[tuple[Job, Any, list[Choice]]] = deque()
        self._waiting: deque[Job] = deque()
        self._prefixes = PrefixStore(settings.prefix_bytes)
        self._flushes: set[Any] = set()  # one a listener, in practice one
        self._wake = threading.Condition()
        self._closing = False
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=f"healfsa-{name}", daemon=True)
        self._thread.start()

    # Called from any thread.

    def prepare(self, job: Job) -> None:
        """Refuse a job that is too large for this model."""
        room = min(self._rows.context, self.settings.cache_tokens)
        length = max(len(job.ids), len(job.scored))
        if length >= room:
            raise ApiError(f"the prompt has {length} tokens; the model can take {room - 1}", param="prompt",
                           code="context_length_exceeded")  # fmt: skip
        if len(job.sequences) > self.settings.rows:
            raise ApiError(f"{len(job.sequences)} choices; at most {self.settings.rows} run at once", param="n")

    def submit(self, jobs: Iterable[Job]) -> None:
        """Queue jobs, all or none.

        Raises
        ------
        ApiError
            The queue is full (429), or the server is going down (503).
        """
        jobs = list(jobs)
        with self._wake:
            if self._closing:
                raise closing()
            if self._waiting and len(self._waiting) + len(jobs) > self.settings.queue:
                raise busy(len(self._waiting))
            self._waiting.extend(jobs)
            self._flushes.update(job.flush for job in jobs)
            self._wake.notify()

    def close(self, seconds: float = 30.0) -> None:
        """Take nothing new, let what runs come to its end for so long, then stop."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(seconds)
        with self._wake:
            self._stopped = True
            self._wake.notify()
        self._thread.join(5.0)

    @property
    def load(self) -> tuple[int, int]:
        """Rows that run and jobs that wait."""
        return len(self._active), len(self._waiting) + len(self._reading)

    # The thread.

    def _run(self) -> None:
        while self._await():
            try:
                self._turn()
            except Exception as failure:
                log.exception("a step failed")
                self._give_up(broken() if not isinstance(failure, HealFSAError) else translated(failure))
            self._flush()
        self._give_up(closing())
        self._flush()

    def _flush(self) -> None:
        for flush in self._flushes:
            flush()

    def _await(self) -> bool:
        """Wait for work; False: it is time to stop."""
        with self._wake:
            while not (self._waiting or self._reading or self._active or self._closing or self._stopped):
                self._wake.wait()
            idle = not (self._waiting or self._reading or self._active)
            return not (self._stopped or (self._closing and idle))

    def _turn(self) -> None:
        """Do one round: leave, admit, read, step."""
        self._drop_late()
        self._admit()
        if self._reading:
            self._read_chunk()
        if self._active:
            self._step()
        self.metrics.waiting.labels(self.name).set(len(self._waiting))
        self.metrics.rows.labels(self.name).set(len(self._active))

    def _give_up(self, error: ApiError) -> None:
        """Fail all jobs that are under way, and start from an empty cache."""
        with self._wake:
            jobs = {job.number: job for job, _ in self._active} | {entry[0].number: entry[0] for entry in self._reading}
            if self._stopped or self._closing:
                jobs |= {job.number: job for job in self._waiting}
                self._waiting.clear()
        self._active, self._reading = [], deque()
        self._rows.rebuild([])
        for job in jobs.values():
            job.fail(error)

    # Joining and leaving.

    def _drop_late(self) -> None:
        """Forget jobs whose client has left or whose time is over."""
        now = time.monotonic()
        with self._wake:
            self._waiting = deque(job for job in self._waiting if self._is_wanted(job, now))
        self._reading = deque(entry for entry in self._reading if self._is_wanted(entry[0], now))
        gone = {job.number for job, _ in self._active if not self._is_wanted(job, now)}
        self._keep([row for row in self._active if row[0].number not in gone])

    def _is_wanted(self, job: Job, now: float) -> bool:
        if job.is_cancelled:
            self.metrics.cancelled.labels(self.name).inc(job.leave())
            return False
        if now > job.deadline and job.running:
            job.fail(too_late(self.settings.request_seconds))
        return bool(job.running)

    def _keep(self, rows: list[Row], joining: Iterable[tuple[Any, list[Row]]] = ()) -> None:
        """Make these the running rows, with those of readings behind them."""
        joining = list(joining)
        if len(rows) == len(self._active) and not joining:
            return
        places = {id(sequence): place for place, (_, sequence) in enumerate(self._active)}
        entries = [(reading, len(new)) for reading, new in joining]
        self._rows.rebuild([places[id(sequence)] for _, sequence in rows], entries)
        self._active = rows + [row for _, new in joining for row in new]

    def _admit(self) -> None:
        """Begin to read waiting prompts, as many as there is room for."""
        while True:
            with self._wake:
                if not self._waiting or not self._has_room(self._waiting[0]):
                    return
                job = self._waiting.popleft()
            try:
                self._begin(job)
            except Exception:
                log.exception("a prompt could not be begun")
                job.fail(broken())

    def _has_room(self, job: Job) -> bool:
        jobs = [entry[0] for entry in self._reading]
        rows = len(self._active) + sum(len(other.sequences) for other in jobs) + len(job.sequences)
        longest = max([job.needed, *(other.needed for other in jobs), *(other.needed for other, _ in self._active)])
        if rows == len(job.sequences):
            return True
        return rows <= self.settings.rows and rows * longest <= self.settings.cache_tokens

    def _begin(self, job: Job) -> None:
        kept, reuse = self._prefixes.find(job.ids) if job.reuse and job.scores is None else (None, 0)
        if job.covers is not None and not (job.covers.weighted or self._rows.takes_trees):
            job.covers = None
        tree = job.covers.tree if job.covers else None
        apart = bool(job.scored) and job.scored != job.ids  # the prompt's own tokens are read first, for their scores
        reading = self._rows.read(job.scored) if apart else self._rows.read(job.ids, kept, reuse, tree)
        job.cached = reading.done
        self.metrics.prompt_tokens.labels(self.name).inc(len(job.ids))
        self.metrics.cached_tokens.labels(self.name).inc(reading.done)
        self._reading.append((job, reading, []))

    # Reading.

    def _read_chunk(self) -> None:
        """Read one chunk of the first prompt in line; what fails there ends that job only."""
        entry = self._reading.popleft()
        try:
            self._read(*entry)
        except HealFSAError as failure:
            entry[0].fail(translated(failure))
        except Exception:
            log.exception("a prompt could not be read")
            entry[0].fail(broken())

    def _read(self, job: Job, reading: Any, scores: list[Choice]) -> None:
        every = job.scores is not None and tuple(reading.ids) == (job.scored or job.ids)
        logits = reading.advance(self.settings.chunk, every)
        if every and job.scores is not None and logits is not None:
            scores += _scores(logits, reading, job.scores)
        if reading.done < len(reading.ids):
            self._reading.append((job, reading, scores))
            return
        if every:
            job.tell(-1, [PromptScores(tuple(scores))])
            if job.scored and job.scored != job.ids:
                same = common(np.asarray(job.scored), np.asarray(job.ids))
                tree = job.covers.tree if job.covers else None
                self._reading.append((job, self._rows.read(job.ids, reading.kept(), same, tree), scores))
                return
        if job.reuse and len(job.ids) > LEAST and not self._prefixes.holds(job.ids):
            self._prefixes.add(job.ids, reading.kept())
        if logits is not None:
            self._start(job, reading, logits[-1])

    def _start(self, job: Job, reading: Any, logits: np.ndarray) -> None:
        """Choose the first token of each choice; the choices that go on join the batch."""
        for sequence in job.sequences:
            if sequence.ends.budget <= 0:
                job.tell(sequence.number, sequence.end("length"))
        rows = [(job, sequence) for sequence in job.running]
        if job.covers is not None:
            begin = self._draw if job.covers.weighted else self._walk
            branches = [(reading.branch(node), part) for node, part in begin(rows, job.covers, reading.behind).items()]
        else:
            self._choose(rows, np.tile(logits, (len(rows), 1)))
            branches = [(reading, rows)]
        self.metrics.first.labels(self.name).observe(time.monotonic() - job.submitted)
        alive = [(place, [row for row in part if row[1].finished is None]) for place, part in branches]
        self._keep(list(self._active), [entry for entry in alive if entry[1]])

    def _walk(self, rows: list[Row], covers: Covers, logits: np.ndarray) -> dict[int, list[Row]]:
        """Choose tokens under masks as far as the covers were read; return the choices behind each node."""
        behind: dict[int, list[Row]] = {}
        going = [(row, 0) for row in rows]
        while going:
            self._choose([row for row, _ in going], logits[[node for _, node in going]])
            onward = []
            for row, node in going:
                sequence = row[1]
                after = None if sequence.finished else covers.children.get((node, sequence.tokens[-1]))
                if after is None:
                    behind.setdefault(node, []).append(row)
                else:
                    onward.append((row, after))
            going = onward
        return behind

    def _draw(self, rows: list[Row], covers: Covers, logits: np.ndarray) -> dict[int, list[Row]]:
        """Draw the first event of each choice with its true weight; return the choices behind each node."""
        behind: dict[int, list[Row]] = {}
        if rows:
            drawing = Drawing(covers, rows[0][1].vocabulary, logits)
        for job, sequence in rows:
            choices, node = drawing.draw(sequence)
            for choice in choices:
                if sequence.finished is None:
                    job.tell(sequence.number, sequence.take(choice))
            behind.setdefault(node, []).append((job, sequence))
            self.metrics.tokens.labels(self.name).inc(len(choices))
        return behind

    # Steps.

    def _step(self) -> None:
        """Run the model once for all rows."""
        logits = self._rows.step([sequence.tokens[-1] for _, sequence in self._active])
        self._choose(self._active, logits)
        for place, (job, sequence) in enumerate(self._active):
            if sequence.finished is not None and not job.is_cancelled:
                self._remember(place, job, sequence)
        self._keep([row for row in self._active if row[1].finished is None])
        self.metrics.steps.labels(self.name).inc()

    def _remember(self, place: int, job: Job, sequence: Sequence) -> None:
        """Keep the cache of a finished first choice: the next turn of a chat begins with it."""
        if job.reuse and sequence.number == 0 and len(job.ids) > LEAST:
            ids = (*job.ids, *sequence.tokens[:-1])
            self._prefixes.add(ids, self._rows.kept(place, len(ids)))

    def _choose(self, rows: list[Row], logits: np.ndarray) -> None:
        """Mask, choose and accept one token a row."""
        failures = self._mask([sequence for _, sequence in rows], logits)
        for (job, sequence), row, failure in zip(rows, logits, failures, strict=True):
            if sequence.finished is not None:
                continue
            if failure is not None:
                job.fail(translated(failure))
                continue
            self._take(job, sequence, row)
        self.metrics.tokens.labels(self.name).inc(len(rows))

    def _mask(self, sequences: list[Sequence], logits: np.ndarray) -> list[HealFSAError | None]:
        if not sequences:
            return []
        started = time.perf_counter()
        bitmask = healfsa.allocate_bitmask(len(sequences), sequences[0].vocabulary.size)
        failures = healfsa.Batch([sequence.matcher for sequence in sequences]).fill_bitmask(bitmask)
        spent = (time.perf_counter() - started) / len(sequences)
        healfsa.apply_bitmask(logits, bitmask)
        self.metrics.mask.labels(self.name).observe(1e6 * spent)
        return failures

    def _take(self, job: Job, sequence: Sequence, row: np.ndarray) -> None:
        try:
            job.tell(sequence.number, sequence.take(sequence.pick(row)))
            if sequence.finished is None and len(job.ids) + len(sequence.tokens) >= self._rows.context:
                job.tell(sequence.number, sequence.end("length"))
        except HealFSAError as failure:
            job.fail(translated(failure))
        except Exception:
            log.exception("a choice failed")
            job.fail(broken())


def _scores(logits: np.ndarray, reading: Any, n: int) -> list[Choice]:
    """Return what the model says of the prompt tokens that follow those just read."""
    start = reading.done - len(logits)
    follow = reading.ids[start + 1 : reading.done + 1]
    return [describe(row, token, n) for row, token in zip(logits, follow)]
