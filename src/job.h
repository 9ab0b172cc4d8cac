/* job.h -- this process's rank as its launcher set it: torchrun, mpirun, srun, ray.
 *
 * Runs in: traced processes, and `run`.
 *
 * A launcher sets environment variables. If there are two launchers, such as torchrun under srun,
 * we use the variables of the launcher that starts the program. */
#ifndef DYNTRACE_JOB_H
#define DYNTRACE_JOB_H

#include <stdlib.h>
#include <string.h>

enum job_fact { JOB_ID, JOB_RANK, JOB_LOCAL_RANK, JOB_WORLD_SIZE, JOB_FACTS };

/* The keys of the facts in the table `meta`, in the order of enum job_fact. */
#define JOB_KEYS "job", "rank", "local_rank", "world_size"

/* Return the value of fact WHICH from the environment, or NULL if no launcher set it. */
static inline const char *job_read_fact(enum job_fact which)
{
    static const char *const names[JOB_FACTS][6] = {
        [JOB_ID] = {"TORCHELASTIC_RUN_ID", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE",
                    "SLURM_JOB_ID", "RAY_JOB_ID"},
        [JOB_RANK] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"},
        [JOB_LOCAL_RANK] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_LOCAL_RANK",
                            "MPI_LOCALRANKID", "SLURM_LOCALID"},
        [JOB_WORLD_SIZE] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE",
                            "SLURM_NTASKS"},
    };

    for (int i = 0; names[which][i]; i++) {
        const char *value = getenv(names[which][i]);
        /* torchrun sets "none" if --rdzv-id is not given. The batch script of sbatch has
         * SLURM_PROCID 0 but is not a rank: SLURM_STEP_ID is set only by srun. */
        if (value && *value && strcmp(value, "none") &&
            (strncmp(names[which][i], "SLURM_", 6) || which == JOB_ID || getenv("SLURM_STEP_ID")))
            return value;
    }
    /* all ranks connect to the same MASTER_ADDR, so its value names the job */
    return which == JOB_ID ? getenv("MASTER_ADDR") : NULL;
}

#endif
