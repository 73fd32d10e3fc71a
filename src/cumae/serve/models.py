"""Served models: opened, asked, described and closed."""

from __future__ import annotations

import gc
import math
from typing import Any

from cumae.claims import claim
from cumae.data import Column
from cumae.errors import InvalidData, InvalidParameter
from cumae.predictors.stateful import StatefulPredictor, counter_of
from cumae.serve.access import Limits, Who, not_allowed
from cumae.serve.asking import Engine, Inline, OracleThread
from cumae.serve.errors import Refused, bad, is_unwell, too_large, unknown, unwell
from cumae.serve.protocol.forms import CELLS, FRAME, NUMBERS, RowFormat, RowsAsked
from cumae.serve.protocol.replies import Labels
from cumae.serve.settings import ModelSettings
from cumae.store import open as open_oracle

VERSION = "1"


class Served:
    """One model that is asked under its name.

    Parameters
    ----------
    settings : ModelSettings
        Where it is.
    estimator : object
        As in ``cumae.open``.
    """

    def __init__(self, settings: ModelSettings, estimator: Any = None) -> None:
        self.name, self._tick = settings.name, settings.tick
        self.settings = settings
        self.unwell = False
        self._engine: Engine | None = None
        self.model = open_oracle(settings.path, estimator=estimator, keys=settings.keys)
        try:
            self._describe()
        except BaseException:
            if hasattr(self.model, "close"):
                self.model.close()
            raise

    def _describe(self) -> None:
        """Read what is fixed about the model; refuse what is none."""
        if not hasattr(self.model, "predict") or not hasattr(self.model, "classes_"):
            raise InvalidParameter(
                f"{self.name!r} answers nothing: it is a {type(self.model).__name__}. Give an "
                "oracle or a model."
            )
        self.is_oracle = isinstance(self.model, StatefulPredictor)
        self.columns, self.form = _form_of(self.model)
        self.labels = Labels(self.model.classes_.tolist())
        # Else a cell that cannot be used refuses the request: where questions are public.
        self.takes_any_cell = self.is_oracle and counter_of(self.model).state.protects_queries
        given = self.model.get_params(deep=False)
        self.names_users = bool(given.get("user_ids", False))
        self._caps_clients = given.get("client_cap") is not None

    def start(self) -> None:
        """Begin to answer; there must be an event loop."""
        self._engine = (
            OracleThread(self.model, self._tick) if self.is_oracle else Inline(self.model)
        )

    def close(self) -> None:
        """Answer what waits, and close the oracle."""
        if self._engine is not None:
            self._engine.close()
        elif self.is_oracle:
            self.model.close()

    @claim("SERVE")
    async def ask(self, question: RowsAsked, who: Who, request_id: str, limits: Limits) -> Any:
        """Return the answers to a question.

        Parameters
        ----------
        question : RowsAsked
            The rows.
        who : Who
            Who asks.
        request_id : str
            Their name for the request; empty if there is none.
        limits : Limits
            What counts rows before they are asked.
        """
        whose = self._whose(question, who)
        if request_id:
            whose["request_id"] = (who.client, request_id)
        limits.take(who.key, question.n_rows)
        try:
            if self._engine is None or self.unwell:
                raise unwell()
            return await self._engine.ask(question, **whose)
        except Exception as error:
            self._look_at(error)
            if not _may_be_charged(error):
                limits.give_back(who.key, question.n_rows)
            raise

    def _look_at(self, error: Exception) -> None:
        """Answer no more after an error of the store."""
        if is_unwell(error):
            self.unwell = True

    @claim("SERVE")
    def _whose(self, question: RowsAsked, who: Who) -> dict[str, Any]:
        """Return who is named in a call; refuse ids that the model has no use for."""
        count = question.n_rows
        if not self.is_oracle:
            if question.query_ids is not None or question.user_ids is not None:
                raise bad("this model is published, and has no use for ids")
            return {}
        whose: dict[str, Any] = {}
        if self.names_users != (question.user_ids is not None):
            need = "needs user_ids, one" if self.names_users else "has no use for user_ids, and"
            raise bad(f"this oracle {need} for each row")
        if question.user_ids is not None:
            whose["users"] = question.user_ids
        if self._caps_clients:
            whose["clients"] = [who.client] * count
        if question.query_ids is not None:
            whose["query_ids"] = own_ids(who, question.query_ids)
        return whose

    async def label(self, who: Who, given: dict[str, Any], most_rows: int) -> int:
        """Tell the oracle labels; return how many.

        Parameters
        ----------
        who : Who
            Who tells them.
        given : dict
            ``labels``, with ``query_ids`` of earlier queries or with ``instances``, new rows.
        most_rows : int
            Most rows of a request.
        """
        labels = given.get("labels")
        if not isinstance(labels, list) or not labels:
            raise bad("labels must be a list")
        if len(labels) > most_rows:
            raise too_large("more rows than this server takes in one request")
        if not all(isinstance(one, str | int | float | bool) for one in labels):
            raise bad("labels must be classes of the model")
        work = self._labelling(who, given, labels)
        if self._engine is None or self.unwell:
            raise unwell()
        try:
            await self._engine.change(work)
        except InvalidData:
            raise bad("labels must be declared classes of the model, one for each row") from None
        except Exception as error:
            self._look_at(error)
            raise
        return len(labels)

    def _labelling(self, who: Who, given: dict[str, Any], labels: list[Any]) -> Any:
        """Return what tells the labels."""
        oracle = self.model
        if not self.is_oracle or not hasattr(oracle, "add_labels"):
            raise bad("this model takes no labels")
        strange = given.keys() - {"labels", "query_ids", "instances", "user_ids"}
        rows, ids = given.get("instances"), given.get("query_ids")
        if strange or (rows is None) == (ids is None):
            raise bad("give labels with query_ids, or with instances")
        if ids is not None:
            if not isinstance(ids, list) or len(ids) != len(labels):
                raise bad("query_ids must be a list with one id for each label")
            own = own_ids(who, ids)
            return lambda: oracle.add_labels(own, labels)
        if not isinstance(rows, list) or len(rows) != len(labels):
            raise bad("instances must be a list with one row for each label")
        records = isinstance(rows[0], dict)
        X = self.form.from_records(rows) if records else self.form.from_rows(rows)
        users = given.get("user_ids")
        if self.names_users != (users is not None):
            raise bad("user_ids must be given where the oracle asks for them, and nowhere else")
        return lambda: oracle.add_labelled(X, labels, users=users)

    @claim("SERVE")
    def facts(self) -> dict[str, Any]:
        """Return the public facts about it, which follow from declarations and public counts."""
        found: dict[str, Any] = {
            "name": self.name,
            "kind": type(self.model).__name__,
            "version": VERSION,
            "ready": not self.unwell,
            "classes": self.model.classes_.tolist(),
            "columns": self.form.titles,
        }
        guarantee = self.model.guarantee_
        found["guarantee"] = {"epsilon": _number(guarantee.epsilon), "delta": guarantee.delta}
        found["guarantee"]["protects"] = str(guarantee.protects)
        left = self._remaining
        found["for_ever"] = not math.isfinite(left)
        if self.is_oracle:
            if hasattr(self.model, "phase_"):
                found["phase"] = self.model.phase_
            found["answered"] = int(counter_of(self.model).state.answered)
            found["remaining"] = _number(left)
        return found

    @property
    def _remaining(self) -> float:
        """Answers that are left."""
        if self._engine is not None:
            return self._engine.remaining
        return float(self.model.remaining_) if self.is_oracle else math.inf


@claim("SERVE")
def own_ids(who: Who, ids: list[Any]) -> list[str]:
    """Return ids of queries that no other client can name.

    Parameters
    ----------
    who : Who
        Who gave them.
    ids : list of str or int
        One for each row.
    """
    for one in ids:
        if not isinstance(one, str | int) or isinstance(one, bool) or not str(one):
            raise bad("ids must be texts or whole numbers")
    return [f"{who.client}\0{type(one).__name__}\0{one}" for one in ids]


def _may_be_charged(error: Exception) -> bool:
    """Return whether an oracle may have been charged for a request that failed."""
    return not isinstance(error, Refused | ValueError)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _form_of(model: Any) -> tuple[list[Column], RowFormat]:
    """Return columns, and the form in which a model takes rows, from what was fixed at fit."""
    if isinstance(model, StatefulPredictor):
        reader = counter_of(model).state.fitted.reader
        columns, as_frames = reader.columns, reader.as_frames
        known = set(reader.numeric)
    else:
        # A PrivateClassifier has the learner that it chose.
        learner = model if hasattr(model, "columns_") else model.model_
        columns, as_frames = learner.columns_, False
        known = set(range(model.n_features_in_))
    numeric = [
        place in known
        and column.kind == "numbers"
        and column.truth is None
        and column.order is None
        for place, column in enumerate(columns.columns)
    ]
    kind = FRAME if as_frames else NUMBERS if columns.numbers_only else CELLS
    form = RowFormat(model.n_features_in_, columns.original_names, kind, numeric)
    return columns.columns, form


class House:
    """All models of a server.

    Parameters
    ----------
    settings : tuple of ModelSettings
        Which they are. If one cannot be opened, the others are closed again.
    freeze : bool
        Whether Python's garbage collector leaves alone all that is loaded by then, so that its
        pauses get shorter: for a process that serves until it ends.
    estimators : dict from str to object, or None
        Estimators of oracles, by their names, that cannot be written out (as in ``cumae.open``).
    """

    def __init__(
        self,
        settings: tuple[ModelSettings, ...],
        *,
        freeze: bool = False,
        estimators: dict[str, Any] | None = None,
    ) -> None:
        self.models: dict[str, Served] = {}
        self._closed = False
        try:
            for one in settings:
                self.models[one.name] = Served(one, (estimators or {}).get(one.name))
        except BaseException:
            self.close()
            raise
        self.first = next(iter(self.models))
        if freeze:
            gc.collect()  # what is garbage now would be kept for ever
            gc.freeze()

    def start(self) -> None:
        """Begin to answer."""
        for one in self.models.values():
            one.start()

    def close(self) -> None:
        """Close all oracles; twice does no harm."""
        if not self._closed:
            self._closed = True
            for one in self.models.values():
                one.close()

    @property
    def is_ready(self) -> bool:
        """True if all models can answer."""
        return not self._closed and not any(one.unwell for one in self.models.values())

    def find(self, name: str, version: str | None, who: Who) -> Served:
        """Return a model; refuse one that is not there, or is not for those who ask.

        Parameters
        ----------
        name, version : str, str or None
            As in the address.
        who : Who
            Who asks.
        """
        if not who.sees(name):
            raise not_allowed()
        found = self.models.get(name)
        if found is None or version not in (None, VERSION):
            raise unknown()
        return found
