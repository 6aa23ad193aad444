"""A batch script of Slurm that starts a job on its nodes."""

from __future__ import annotations

import json
import shlex

from hookbridge.ground.processes import exit_codes
from hookbridge.jobs.cluster_config.job_order import PORT, JobOrder

_SCRIPT = (
    "#!/bin/bash\n"
    "#SBATCH --job-name={name}\n"
    "#SBATCH --ntasks={tasks}\n"
    "#SBATCH --ntasks-per-node=1\n"
    "#SBATCH --distribution=block\n"
    "{gpus}#SBATCH --requeue\n"
    "#SBATCH --open-mode=append\n"
    "#SBATCH --signal=TERM@{grace_secs}\n"
    "# Each process gets a node, TF_CONFIG, and SIGTERM before the time is over.\n\n"
    'nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))\n'
    "export CLUSTER={cluster}\n"
    "for ((rank = 0; rank < SLURM_NTASKS; rank++)); do\n  host=${{nodes[rank / "
    "${{SLURM_NTASKS_PER_NODE:-1}}]}}\n  "
    'CLUSTER=${{CLUSTER/\\"$rank\\"/\\"$host:$(({port} + rank))\\"}}\n'
    "done\n"
    "export TASKS={places}\n"
    "code=0\n"
    'srun bash -c \'\n  task=$(sed -n "$((SLURM_PROCID + 1))p" <<< "$TASKS")\n  '
    'export TF_CONFIG="{{\\"cluster\\": $CLUSTER, \\"task\\": $task}}"\n  exec "$@"\n'
    "' task {command} || code=$?\n"
    "# With exit code {retry} or above, a new start continues from the last "
    "checkpoint.\n"
    'if ((code >= {retry})); then\n  scontrol requeue "$SLURM_JOB_ID"\n'
    "fi\n"
    "exit $code\n"
)


def script(order: JobOrder) -> str:
    """Return the script, for `sbatch`."""
    places: list[dict[str, object]] = []
    cluster: dict[str, list[str]] = {}
    for replica in order.replicas:
        ranks = range(len(places), len(places) + replica.number)
        places += [{"type": replica.job, "index": i} for i in range(replica.number)]
        if replica.job != "evaluator":
            cluster[replica.job] = [str(rank) for rank in ranks]
    gpus = max(replica.gpus for replica in order.replicas)
    return _SCRIPT.format(
        gpus=f"#SBATCH --gpus-per-node={gpus}\n" if gpus else "",
        name=order.name,
        tasks=len(places),
        grace_secs=int(order.grace_secs),
        cluster=shlex.quote(json.dumps(cluster)),
        places=shlex.quote("\n".join(map(json.dumps, places))),
        port=PORT,
        command=shlex.join(order.command),
        retry=exit_codes.RETRY_FROM,
    )
