"""What the API says of one trial: all that its page shows. Names, logs and code in it are the job's word alone."""

from __future__ import annotations

from pydantic import Field

from agent.store.views import ParamValue, TrialState, TrialView
from agent.web.wire import View
from runtime_client.models import AttemptView, SuggestionView


class ParameterRow(View):
    """One searched parameter, beside its default and what the trial that this one was made from had."""

    name: str
    value: ParamValue
    default: ParamValue
    parent: ParamValue
    """The parent's; the same as `default` where there is no parent."""


class Sibling(View):
    """A trial of the same configuration with another seed; looks at the held-out metric are none."""

    trial_id: str
    seed: int
    purpose: str
    state: TrialState
    value: float | None


class AgainstDefault(View):
    """The configuration held against the session's default, over the seeds that both have on fresh replicates."""

    comparison: str
    reason: str
    n_pairs: int
    estimate: float | None = None
    """Mean difference, this minus default, in the metric's units; None: nothing can be said yet."""
    low: float | None = None
    high: float | None = None
    confidence: float | None = None


class JobPart(View):
    """One of the jobs that carried the trial."""

    job_id: str
    role: str
    """training, or scoring."""
    problem: str | None = None
    """Why no more is known of it; None: the rest is set."""
    state: str | None = None
    state_reason: str | None = None
    exit_reason: str | None = None
    submitted_at: float | None = None
    ended_at: float | None = None
    checkpoint_step: int | None = None
    run_id: str | None = None
    mlflow_url: str | None = None
    """A web address; None: MLflow has not got the run yet, or there is no MLflow."""
    attempts: tuple[AttemptView, ...] = ()
    suggestion: SuggestionView | None = None


class RunPlace(View):
    """An MLflow run."""

    run_id: str
    name: str
    experiment: str
    mlflow_url: str | None
    """A web address; None: MLflow has not got it yet, or there is no MLflow."""


class TrialDetail(View):
    trial: TrialView
    task_name: str
    metric: str
    """What its value is of: the objective's, or the held-out one of a look at it."""
    direction: str
    hypothesis: str | None
    """What the hypothesis that it tests says; None: it tests none."""
    parent_id: str | None
    """The trial that it was made from: whose code was edited, or whose failure it mends. None: the default."""
    is_default: bool
    """It has the default's parameters and the base's code."""
    parameters: tuple[ParameterRow, ...]
    standing: str
    """How its configuration stands against the default, in a word or two."""
    gain_over_default: float | None
    """Of its value over the default's with the same seed; None: one of them has none."""
    against_default: AgainstDefault | None
    """None: this is the default, or the two have no pairs."""
    replicates: tuple[Sibling, ...]
    jobs: tuple[JobPart, ...]
    """In the order in which they ran."""
    runtime_problem: str | None
    """Why the runtime says nothing now: curves, logs and attempts are missing then. None: it answers."""


class CurvePiece(View):
    """What one attempt logged."""

    job_id: str
    attempt: int
    points: tuple[tuple[int, float | None], ...]
    """Step and value, steps never falling; None: not a finite number."""


class Curve(View):
    key: str
    x: str
    """`step`; `point` where the script gave no steps, so that values are only counted."""
    n_points: int
    """Before it was thinned."""
    n_not_finite: int
    first_not_finite: str | None
    """`NaN at step 12`; None: all values are numbers."""
    pieces: tuple[CurvePiece, ...]
    """By attempt, oldest first; what an attempt did again after an interruption is in both."""


class Curves(View):
    keys: tuple[str, ...]
    """All metrics that were logged, sorted."""
    curves: tuple[Curve, ...]
    """Of those asked for; of the objective's metric, else the first, where none was."""


class CodeChange(View):
    """What the edited code changes. Nobody has vouched for it."""

    against: str
    """`base`, or a trial's id."""
    diff: str | None
    """To be read and not to be applied: what a reader would not see is left out. None: see `problem`."""
    is_cut: bool = False
    problem: str | None = None


class LogPiece(View):
    """A piece of an attempt's output, as it was printed."""

    job_id: str
    attempt: int
    stream: str
    streams: tuple[str, ...]
    """`main`, and the ranks that have output of their own."""
    text: str
    start: int
    """Byte where it begins: give it as `before` for what is older; 0: nothing is."""
    end: int
    """Byte behind it: give it as `offset` to go on."""
    is_complete: bool = Field(description="The attempt has ended, and this reaches the end.")


class ArtifactRow(View):
    path: str
    is_folder: bool
    size_bytes: int | None = None


class ArtifactFolder(View):
    folder: str
    items: tuple[ArtifactRow, ...]
    problem: str | None = None
    """Why they can not be listed; None: these are all, or the first thousand."""


class Growth(View):
    """Data of the events of a trial's growth: there is more, and nothing else is said."""
