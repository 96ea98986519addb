// How attempts ended, in words.

const REASONS: Record<string, string> = {
  completed: "it ended well",
  criteria_not_met: "it ended well, but a required metric is missing",
  non_finite_metric: "a required metric is NaN or infinite",
  code_error: "the command failed by itself",
  import_error: "a module could not be imported",
  bad_arguments: "the script does not take the arguments that it was given",
  missing_file: "a file is missing",
  permission_denied: "it was not permitted to read or write something",
  bad_checkpoint: "what it resumed from can not be read, or does not fit",
  out_of_memory_device: "the device ran out of memory",
  out_of_memory_host: "the machine ran out of memory",
  disk_full: "the disk is full",
  collective_failure: "its ranks lost each other",
  network_error: "something outside could not be reached",
  device_unavailable: "it found no fit device",
  device_fault: "its output names a device error",
  device_lost: "the device itself reported a fault",
  killed_by_signal: "it was killed by a signal that nightlab did not send",
  hung: "it gave no sign of life",
  run_timeout: "its time limit was over",
  queue_timeout: "it waited longer than it may",
  over_budget: "the device time that it may use was used up",
  deadline: "the hour came by which it was to be over",
  no_checkpoint_progress: "it was restarted three times without a newer checkpoint",
  preempted: "it left for another job",
  requeue_asked: "it saved its work and asked to be run again",
  do_not_requeue: "it asked not to be run again",
  cancelled: "somebody cancelled it",
  node_lost: "its machine was lost",
  supervisor_lost: "what watched it was lost",
};

export function reasonWords(reason: string | null | undefined): string {
  if (!reason) return "";
  return REASONS[reason] ?? reason.replaceAll("_", " ");
}

export function sizeWords(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return "";
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 ** 2) return `${(bytes / 1024).toFixed(1)} KiB`;
  if (bytes < 1024 ** 3) return `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
  return `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
}
