"""The training SDK with real torch: several ranks stop together, workers survive the notice, states come back."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path

import pytest
from training_process import Attempt, eventually

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]

GLOO = """
import os, sys, time
from pathlib import Path
import torch, torch.distributed as dist
from runtime_client import training
from runtime_client.training.for_torch import BatchOrder, PreemptibleLoop
training.should_stop()  # listens from here on
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = torch.nn.Linear(4, 1)
wrapped = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.Adam(wrapped.parameters())
x = torch.arange(64 * 4, dtype=torch.float32).reshape(64, 4) / 256
loop = PreemptibleLoop(model=model, optimizer=optimizer, every=7)
order = BatchOrder(64, batch_size=4, rank=rank, n_ranks=dist.get_world_size())
for step in loop.steps(int(sys.argv[1])):
    Path(f"begun-{rank}").touch()
    time.sleep(float(sys.argv[2]) * rank)  # they see the notice at different moments
    loss = (wrapped(x[order[step]]) + torch.randn(4, 1)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(step, repr(loss.item()), flush=True)
"""


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def run(attempt: Attempt, script: Path, n_steps: int, pause_s: float = 0.0) -> None:
    attempt.start(script, str(n_steps), str(pause_s), MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port())


def test_real_ranks_stop_at_the_same_step_and_resume_to_the_undisturbed_curve(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(GLOO)
    undisturbed = Attempt(tmp_path / "undisturbed", ranks=3)
    run(undisturbed, script, 30)
    expected = [output.splitlines() for _, output, _ in undisturbed.results()]
    assert [len(lines) for lines in expected] == [30, 30, 30]

    attempt = Attempt(tmp_path, ranks=3)
    run(attempt, script, 30, 0.02)
    eventually(lambda: len(list(attempt.folder.glob("begun-*"))) == 3)
    attempt.ask_to_leave()
    results = attempt.results()
    assert [code for code, _, _ in results] == [75, 75, 75], results
    left = [output.splitlines() for _, output, _ in results]
    assert len({len(lines) for lines in left}) == 1, "all leave after the same step"
    assert 0 < len(left[0]) < 30
    assert len(list(attempt.checkpoint_dir.glob("step-*/COMPLETE"))) >= 1

    again = Attempt(tmp_path, number=2, ranks=3)
    run(again, script, 30)
    resumed = [output.splitlines() for _, output, _ in again.results()]
    assert [[*before, *after] for before, after in zip(left, resumed, strict=True)] == expected


WORKERS = """
import time
from pathlib import Path
import torch
from torch.utils.data import DataLoader
from runtime_client import training
from runtime_client.training.for_torch import BatchOrder, PreemptibleLoop

class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        time.sleep(0.02)
        return index

loop = PreemptibleLoop()
loader = DataLoader(Slow(), batch_sampler=BatchOrder(1000, batch_size=4).after(0), num_workers=2,
                    worker_init_fn=training.ignore_stop_signal)
for step, batch in zip(loop.steps(10_000), loader):
    Path("begun").touch()
"""


def test_workers_of_a_loader_survive_the_notice_to_the_group(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.start(WORKERS)
    eventually((attempt.folder / "begun").exists)
    attempt.ask_to_leave()
    ((code, _, errors),) = attempt.results()
    assert code == 75, errors
    assert len(list(attempt.checkpoint_dir.glob("step-*/COMPLETE"))) == 1


DAMAGED = """
import torch
from runtime_client.training.for_torch import PreemptibleLoop
print(PreemptibleLoop(model=torch.nn.Linear(2, 1)).step)
"""


def test_a_damaged_file_of_torch_is_skipped(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.notice.touch()
    saving = (
        DAMAGED.replace("print(", "loop = (").replace(".step)", ")") + "for step in loop.steps(2):\n    print(step)\n"
    )
    attempt.start(saving)
    assert attempt.wait() == [75]
    second = Attempt(tmp_path, number=2)
    second.notice.touch()
    second.start(saving)
    assert second.wait() == [75]
    state = attempt.checkpoint_dir / "step-2" / "state.pt"
    state.write_bytes(state.read_bytes()[:100].ljust(state.stat().st_size, b"x"))
    third = Attempt(tmp_path, number=3)
    third.start(DAMAGED)
    ((code, output, errors),) = third.results()
    assert (code, output) == (0, "1\n"), errors
    assert "step-2 can not be read" in errors


TRAINER_WORKERS = """
import time
from pathlib import Path
import torch
from transformers import Trainer, TrainingArguments
from runtime_client import training
from runtime_client.training.for_trainer import PreemptibleCallback

class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000
    def __getitem__(self, index):
        Path("begun").touch()
        time.sleep(0.02)
        return {"x": torch.ones(2), "labels": torch.ones(1)}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(2, 1)
    def forward(self, x, labels):
        return {"loss": (self.net(x) - labels).square().mean()}

arguments = TrainingArguments(output_dir=str(training.context().checkpoint_dir / "trainer"), max_steps=5000,
    dataloader_num_workers=2, report_to="none", use_cpu=True, save_strategy="no")
Trainer(model=Model(), args=arguments, train_dataset=Slow(), callbacks=[PreemptibleCallback()]).train()
"""


@pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None or importlib.util.find_spec("accelerate") is None,
    reason="transformers is not installed",
)
def test_workers_of_the_trainer_survive_the_notice_too(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    attempt.start("from runtime_client import training; training.should_stop()\n" + TRAINER_WORKERS)
    eventually((attempt.folder / "begun").exists)
    attempt.ask_to_leave()
    ((code, _, errors),) = attempt.results()
    assert code == 75, errors
    assert len(list(attempt.checkpoint_dir.glob("step-*/COMPLETE"))) == 1
