/* job.h -- this process's rank as its launcher set it: torchrun, mpirun, srun, ray.
 *
 * Runs in: traced processes, and `run`.
 *
 * A launcher sets environment variables. With two launchers, such as torchrun under srun, the one
 * nearer to the program counts. */
#ifndef DYNTRACE_JOB_H
#define DYNTRACE_JOB_H

#include <stdlib.h>
#include <string.h>

enum job_fact { JOB_ID, JOB_RANK, JOB_LOCAL_RANK, JOB_WORLD_SIZE, JOB_FACTS };

/* The key in `meta` of each. */
#define JOB_KEYS "job", "rank", "local_rank", "world_size"

/* NULL: not set. */
static inline const char *job_fact(enum job_fact which)
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
        /* torchrun says "none" where no --rdzv-id is given; sbatch's own script is no rank, though
         * it has the number 0. */
        if (value && *value && strcmp(value, "none") &&
            (strncmp(names[which][i], "SLURM_", 6) || which == JOB_ID || getenv("SLURM_STEP_ID")))
            return value;
    }
    return which == JOB_ID ? getenv("MASTER_ADDR") : NULL; /* all ranks meet there */
}

#endif
