"""A scheduling policy from a YAML file, and back: the door between `PolicySpec` and the core's `Policy`.

The policy in force for a home is the file `policy.yaml` in it; without one it is the default. Reads files, and knows
no server: the simulator's command uses it too.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import ValidationError

from runtime.scheduling.policy import Policy, PriorityClass, ProjectShare, Quota
from runtime_client.models import PolicySpec, PriorityClassSpec, ProjectShareSpec, QuotaSpec

from . import strict_yaml
from .refusal import validation_error

COMPOSED = ("classes", "quotas", "projects")
"""Fields that are more than a number."""
POLICY_FILE = "policy.yaml"
"""Its name in a home folder."""


class BadPolicy(ValueError):
    """A policy that can not be used; the message names the file, the field and what is allowed."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


def read_policy(path: Path) -> Policy:
    """
    Raises:
        BadPolicy: no such file, no YAML, an unknown field, or a value that is not allowed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadPolicy(path, f"can not be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadPolicy(path, "can not be read: it is no text in UTF-8") from error
    return parse_policy(text, path)


def parse_policy(text: str, path: Path) -> Policy:
    """The policy that a file with this text states; an empty one states the default.

    Raises:
        BadPolicy: as `read_policy`.
    """
    try:
        content = strict_yaml.load(text)
    except strict_yaml.NotYaml as error:
        raise BadPolicy(path, str(error)) from error
    if content is None:
        return Policy()
    if not isinstance(content, dict):
        raise BadPolicy(path, "is no policy: it must be a map, such as `min_run_s: 60`")
    try:
        spec = PolicySpec.model_validate(content)
    except ValidationError as error:
        raise BadPolicy(path, validation_error(error.errors(), PolicySpec).message) from error
    return policy_of(spec)


def policy_in(home: Path) -> Policy:
    """The policy of a home folder.

    Raises:
        BadPolicy: there is a file, and it can not be used.
    """
    path = home / POLICY_FILE
    return read_policy(path) if path.exists() else Policy()


def policy_to_serve(home: Path) -> Policy:
    """The policy of a home folder, for a server that is about to start.

    Raises:
        SystemExit: 2 when it can not be used (one sentence on standard error).
    """
    try:
        return policy_in(home)
    except BadPolicy as error:
        print(f"nightlab: {error}", file=sys.stderr)
        raise SystemExit(2) from error


def policy_of(spec: PolicySpec) -> Policy:
    plain = {name: getattr(spec, name) for name in PolicySpec.model_fields if name not in COMPOSED}
    return Policy(
        classes={
            name: PriorityClass(name=name, priority=cls.priority, is_preemptible=cls.is_preemptible)
            for name, cls in spec.classes.items()
        },
        quotas=tuple(Quota(**quota.model_dump()) for quota in spec.quotas),
        projects={name: ProjectShare(**share.model_dump()) for name, share in spec.projects.items()},
        **plain,
    )


def spec_of(policy: Policy) -> PolicySpec:
    """What a policy says, every field of it."""
    plain = {name: getattr(policy, name) for name in PolicySpec.model_fields if name not in COMPOSED}
    return PolicySpec(
        classes={
            name: PriorityClassSpec(priority=cls.priority, is_preemptible=cls.is_preemptible)
            for name, cls in policy.classes.items()
        },
        quotas=tuple(
            QuotaSpec(max_devices=quota.max_devices, project=quota.project, priority_class=quota.priority_class)
            for quota in policy.quotas
        ),
        projects={
            name: ProjectShareSpec(deserved_devices=share.deserved_devices, weight=share.weight)
            for name, share in policy.projects.items()
        },
        **plain,
    )
