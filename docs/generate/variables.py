"""variables.md: the environment of a job, and what commands read of theirs. A test looks for the names in the code."""

from __future__ import annotations

from docs.generate.markdown import cell, table

_HEAD = """\
# Variables of a job

A job has the environment that it was submitted with (`bsub -env` says what of it), and these. What other launchers and an outer
job set is left out: what begins with PMI_, PMIX_, OMPI_, PRTE_, HYDI_ or SLURM_, TERM, and most of the variables below.
"""

SECTIONS = {
    "The job": """\
LSB_JOBID: its id; of an element that of its array
LSB_JOBINDEX: the element's index; 0 for a job that is none
LSB_JOBINDEX_END LSB_JOBINDEX_STEP: the last index of its array, and the step
LSB_BATCH_JID: the id with the index: 12[3]
LSB_JOBNAME: its name, of an element that of the array with its indices; else its command
LSB_QUEUE: its queue
LSB_PROJECT_NAME: its project
LSB_APPLICATION_NAME: its application profile
LSB_JOB_GROUP: its job group
LSB_SUB_HOST: where it was submitted
LSB_SUB_USER: who submitted it
LSB_JOB_EXECUSER LSFUSER USER LOGNAME: whose account it runs in
LSB_UNIXGROUP: the group of that account
LS_SUBCWD PWD: the folder that it was submitted from; PWD is where it runs, if that is another
LSB_SUB_RES_REQ: its requirement (-R)
LSB_EFFECTIVE_RSRCREQ: the same, with those of profile and queue
LSB_EXIT_REQUEUE: exit values with which it is queued again
LSB_EXIT_PRE_ABORT: 99: a pre-execution command that ends with it ends the job
LSB_RESTART: Y: it ran before
LSB_RESTART_COUNT: how often it was started again
LSB_INTERACTIVE: Y: it is interactive
LSB_EXEC_CLUSTER: the cluster
LAVA_ATTEMPT: the attempt, by a random number
""",
    "Hosts and slots": """\
LSB_HOSTS: a host name for each slot; left out where it would be longer than 4096 bytes
LSB_MCPU_HOSTS: host1 2 host2 2
LSB_DJOB_HOSTFILE: a file with a line for each slot
LSB_DJOB_RANKFILE: the same with the first host once more on top
LSB_DJOB_NUMPROC LSB_MAX_NUM_PROCESSORS: how many slots it has
LSB_DJOB_ENV_SCRIPT LSB_DJOB_RTASK_GONE_ACTION LSB_DJOB_DISABLED: DJOB_ parameters of its profile
LSB_CONTAINER_IMAGE: the image, where CONTAINER of its profile or queue leaves it to the job
LAVA_HOST HOSTNAME: the host, as lava names it
HOSTTYPE: linux
LSB_RESIZABLE: Y: its hosts may change; then LSB_DJOB_HOSTFILE and these two files change with them
LAVA_MCPU_HOSTFILE: what LSB_MCPU_HOSTS says
LAVA_DISCOVER_HOSTS: a program that prints host:slots, for launchers that ask
""",
    "CPUs and GPUs": """\
CUDA_VISIBLE_DEVICES: its GPUs, or the task's, by UUID
NVIDIA_VISIBLE_DEVICES: the same for container runtimes
CUDA_DEVICE_ORDER: PCI_BUS_ID
CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY: the folders of its MPS daemon
LSB_BIND_CPU_LIST: CPUs that it is bound to (affinity[])
LSB_BIND_MEM_LIST LSB_BIND_MEM_POLICY: memory nodes, and localonly or localprefer
LSB_AFFINITY_HOSTFILE: a file with a line for each task: host, CPUs, memory nodes
""",
    "Files, time, and what commands in a job need": """\
LSB_OUTPUTFILE LSB_ERRORFILE LSB_INPUTFILE: the files of -o, -e and -i
LSB_OUTDIR: the folder of -outdir
LSB_JOBFILENAME LSB_CHKFILENAME: what the job's files on this host begin with
LSB_ACCT_FILE: a name in /tmp
TMPDIR: a folder of its own, with LSB_SET_TMPDIR
LAVA_TIME_LEFT_FILE: a file that says when it must end, in seconds since the epoch; empty: it need not
LSF_ENVDIR LSF_BINDIR LSF_LIBDIR LSF_SERVERDIR LSF_LOGDIR XLSF_UIDDIR: folders of lsf.conf
LAVA_SOCKET LAVA_TOKEN LAVA_TASKS: by which blaunch and other commands reach the agent and the job
LSB_TRAPSIGS LSB_JOBEXIT_STAT LS_EXEC_T LSF_EAUTH_CLIENT LSF_EAUTH_SERVER: as LSF sets them
""",
    "Checkpoints": """\
LSB_CHKPNT_DIR LAVA_CKPT_DIR: the job's own checkpoint folder
LSB_CHKPNT_PERIOD: seconds between two checkpoints
LAVA_CKPT_SIGNAL: the signal that asks for one
LAVA_CKPT_GENERATION: the newest generation that is known to be whole
LAVA_CKPT_PART: the place of its host, where each host has a part of a generation
""",
    "Ranks of -a mpi": """\
PMI_RANK PMI_SIZE PMI_FD: PMI
MPI_LOCALRANKID MPI_LOCALNRANKS: the rank's number on its host, and how many there are
LSF_PM_TASKID: the rank's number, from 1
MPIR_CVAR_CH4_NETMOD FI_PROVIDER: ofi and tcp, in jobs of checkpoint method criu
""",
    "Launchers of MPI libraries": """\
OMPI_MCA_plm_rsh_agent PRTE_MCA_plm_ssh_agent I_MPI_HYDRA_BOOTSTRAP_EXEC: blaunch
OMPI_MCA_orte_default_hostfile PRTE_MCA_prte_default_hostfile: a file: host slots=N
OMPI_MCA_hwloc_base_binding_policy PRTE_MCA_hwloc_default_binding_policy: none: ranks are not bound unless you say so
I_MPI_HYDRA_BOOTSTRAP I_MPI_HYDRA_RMK: lsf
HYDRA_IFACE I_MPI_HYDRA_IFACE: the interface, where the host's name does not resolve or LAVA_MPI_INTERFACE names one
OMPI_ALLOW_RUN_AS_ROOT PRTE_ALLOW_RUN_AS_ROOT: 1 in root's jobs, and with _CONFIRM behind them
LAVA_MPI: the library that -a named, for mpirun.lsf
""",
    "Training frameworks": """\
MASTER_ADDR MASTER_PORT: where the first rank listens
RANK WORLD_SIZE: the rank, and how many there are
LOCAL_RANK LOCAL_WORLD_SIZE: the same on its host
GROUP_RANK NODE_RANK GROUP_WORLD_SIZE: the host's number, and how many there are
LAVA_PEERS: name:ranks:address of each host
LAVA_LAUNCH: the framework
OMP_NUM_THREADS: 1, if you set none
GLOO_SOCKET_IFNAME: the network interface, if you set none
TF_CONFIG: tensorflow: the cluster, and this task
JAX_COORDINATOR_ADDRESS JAX_NUM_PROCESSES JAX_PROCESS_ID: jax
JSM_NAMESPACE_RANK JSM_NAMESPACE_SIZE JSM_NAMESPACE_LOCAL_RANK JSM_NAMESPACE_LOCAL_SIZE: lightning
LOCAL_SIZE CROSS_RANK CROSS_SIZE: deepspeed
HOROVOD_RANK HOROVOD_SIZE HOROVOD_LOCAL_RANK HOROVOD_LOCAL_SIZE HOROVOD_CROSS_RANK HOROVOD_CROSS_SIZE HOROVOD_HOSTNAME: horovod
HOROVOD_CONTROLLER HOROVOD_CPU_OPERATIONS HOROVOD_GLOO_RENDEZVOUS_ADDR HOROVOD_GLOO_RENDEZVOUS_PORT HOROVOD_GLOO_IFACE: horovod
PET_NNODES PET_NPROC_PER_NODE PET_NODE_RANK PET_MASTER_ADDR PET_MASTER_PORT: torchrun in a job with roles
PET_RDZV_BACKEND PET_RDZV_ENDPOINT PET_RDZV_ID PET_RDZV_CONF TORCH_DISABLE_SHARE_RDZV_TCP_STORE: the same
""",
    "Jobs with roles": """\
LAVA_ROLE LAVA_INDEX: the task's role, and its number in it
LAVA_RANK LAVA_SIZE: its number among all tasks, and how many there are
LAVA_RESTARTS: how often it was started again
LAVA_PORT: a port of its own
LAVA_SCRATCH: a folder of its own, with scratch
LAVA_PEER_ROLE_N LAVA_COUNT_ROLE: address:port of a task, by its role and number; how many the role has
LAVA_HOSTFILE: the list of the workers' slots
COORDINATOR_ADDRESS COORDINATOR_PORT NUM_PROCESSES PROCESS_ID: jax, beside the JAX_ ones above
PADDLE_MASTER PADDLE_NNODES PADDLE_RANK PADDLE_JOB_ID POD_IP: paddle: what paddle.distributed.launch reads
PADDLE_SERVER_NUM PADDLE_TRAINER_NUM: paddle with a role master: 1 in its tasks, in those of the others
MX_CONFIG DMLC_ROLE DMLC_WORKER_ID DMLC_NODE_HOST: mxnet: all tasks, and this one
DMLC_PS_ROOT_URI DMLC_PS_ROOT_PORT DMLC_NUM_SERVER DMLC_NUM_WORKER: mxnet: the scheduler, and how many serve and train
VC_TASK_INDEX VK_TASK_INDEX: volcano: the number in the role; VC_TASK_HOSTS and VC_TASK_NUM for each task's name
MPI_HOST: volcano(mpi): the hosts of the workers, in the master
DMLC_TRACKER_URI DMLC_TRACKER_PORT DMLC_TASK_ID DMLC_NUM_WORKER: xgboost: where the tracker is, this one's number, how many
JOB_COMPLETION_INDEX: an indexed Job of batch/v1: the element's number, from 0
""",
    "Commands around a job": """\
LSB_JOBPIDS LSB_JOBPGIDS: of JOB_CONTROLS: the job's processes, and their groups
LSB_RESIZE_NAME LSB_RESIZE_EVENT LSB_RESIZE_HOSTS: of -rnc: the job, grow or shrink, the hosts that came or go
LSB_RESIZE_NOTIFY_OK LSB_RESIZE_NOTIFY_FAIL: the exit codes 0 and 1
LSB_ECHKPNT_METHOD: of echkpnt and erestart: the method
""",
    "What commands read": """\
LSF_ENVDIR: the folder of lsf.conf
LAVA_DIR: the folder of a cluster of lava up
LSB_DEFAULTQUEUE LSB_DEFAULTPROJECT LSB_DEFAULT_JOBGROUP: bsub: queue, project and job group where no option names one
LSB_BJOBS_FORMAT LSB_BHOSTS_FORMAT LSB_BQUEUES_FORMAT LSB_BUSERS_FORMAT LSF_LSHOSTS_FORMAT LSF_LSLOAD_FORMAT: columns without -o
LSB_NTRIES: bsub: how often it tries where too many jobs wait
LSB_ESUB_METHOD: esubs that run for every bsub
BSUB_CHK_RESREQ: bsub says whether the resource requirement (`-R`) reads, and submits nothing
BSUB_QUIET: bsub does not say the job's id
BSUB_QUIET2: bsub does not say what an interactive job, or -K, waits for
LSF_INTERACTIVE_STDERR LSB_SUBK_SHOW_JOBID: as in lsf.conf
LSB_EXIT_IF_CWD_NOTEXIST: Y: a job whose folder cannot be entered ends with 2
LSB_ECHKPNT_KEEP_OUTPUT: as in lsf.conf
LAVA_NATIVE: N: commands, and the jobs of a starter, go by Python
NO_COLOR: no colours on a terminal
XDG_STATE_HOME: where clusters of lava up lie
LAVA_CLIENT_DIR LAVA_URL LAVA_TOKEN_FILE LAVA_CA_FILE: lava_client: where calls lie; a cluster afar
""",
}
_SEE = {
    "Checkpoints": "[checkpoints](../checkpoint.md)",
    "Ranks of -a mpi": "[MPI](../mpi.md)",
    "Launchers of MPI libraries": "[MPI](../mpi.md#launchers-of-the-mpi-libraries)",
    "Training frameworks": "[training frameworks](../frameworks.md#what-each-rank-finds)",
    "Jobs with roles": "[jobs with roles](../roles.md#what-a-task-finds)",
    "CPUs and GPUs": "[GPUs](../gpus.md)",
}


def page() -> str:
    parts = [_HEAD]
    for title, block in SECTIONS.items():
        see = f"More: {_SEE[title]}.\n\n" if title in _SEE else ""
        rows = [(", ".join(f"`{name}`" for name in known), cell(words)) for known, words in map(_split, block.splitlines())]
        parts.append(f"\n## {title}\n\n{see}{table(('Variable', ''), rows)}")
    return "".join(parts)


def names() -> list[str]:
    """All that the page names."""
    return [name for block in SECTIONS.values() for line in block.splitlines() for name in _split(line)[0]]


def _split(line: str) -> tuple[list[str], str]:
    """The names in front, and the text."""
    left, _, words = line.partition(": ")
    return left.split(), words
