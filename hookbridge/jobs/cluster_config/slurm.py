"""A batch script of Slurm that starts a job on its nodes."""

from __future__ import annotations

import json
import shlex

from hookbridge.ground import exit_codes
from hookbridge.jobs.cluster_config.job_order import PORT, JobOrder

_SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --ntasks={tasks}
#SBATCH --ntasks-per-node=1
#SBATCH --distribution=block
{gpus}#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@{grace_secs}
# Each process gets a node, TF_CONFIG, and SIGTERM before the time is over.

nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
export CLUSTER={cluster}
for ((rank = 0; rank < SLURM_NTASKS; rank++)); do
  host=${{nodes[rank / ${{SLURM_NTASKS_PER_NODE:-1}}]}}
  CLUSTER=${{CLUSTER/\\"$rank\\"/\\"$host:$(({port} + rank))\\"}}
done
export TASKS={places}
code=0
srun bash -c '
  task=$(sed -n "$((SLURM_PROCID + 1))p" <<< "$TASKS")
  export TF_CONFIG="{{\\"cluster\\": $CLUSTER, \\"task\\": $task}}"
  exec "$@"
' task {command} || code=$?
# From {retry} on a new start goes on from the last checkpoint.
if ((code >= {retry})); then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit $code
"""


def script(order: JobOrder) -> str:
    """The script, for `sbatch`."""
    places: list[dict[str, object]] = []
    cluster: dict[str, list[str]] = {}
    for each in order.replicas:
        ranks = range(len(places), len(places) + each.number)
        places += [{"type": each.job, "index": i} for i in range(each.number)]
        if each.job != "evaluator":
            cluster[each.job] = [str(rank) for rank in ranks]
    gpus = max(each.gpus for each in order.replicas)
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
