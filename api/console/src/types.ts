// The answers of /v1 and /v2 that the console reads; api/schema/schemas.def is the contract.

export interface TensorSpec { name: string; dtype: string; shape: (number | string)[]; kind?: string }
export interface Page<T> { items: T[]; next_cursor: string | null }

export interface Model {
  id: string; name: string; names: string[]; format: string; size: number; inputs: TensorSpec[]; outputs: TensorSpec[];
  ops: Record<string, number>; parameters: number; created_at: string;
}

export interface GraphNode {
  op: string; inputs: string[]; outputs: string[]; origins: string[]; attributes?: Record<string, string>; refused?: string[]; region?: Graph;
}
export interface Graph {
  name: string; inputs: string[]; outputs: string[]; nodes: GraphNode[];
  values: Record<string, {type: string; constant: boolean}>;
}
export interface ModelGraph extends Graph { stage: 'imported' | 'optimized'; target?: string; opt_level?: number; passes?: string[] }

export type JobState = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';
export interface Task {
  task: string; name: string; layer?: string; algorithm?: string; calls: number; trials: number; reused?: boolean;
  default_ms?: number | null; best_ms?: number | null; gflops?: number | null; flops?: number; bytes?: number;
  failures?: Record<string, {count: number; first: string} | number>;
}
export interface Progress {
  stage?: string; done?: number; total?: number; best_ms?: number | null; eta_s?: number | null; tasks?: Task[];
}
export interface Summary { mean_ms: number; median_ms: number; max_ms: number; min_ms: number; std_ms: number; runs_ms: number[] }
/** What the machine can do at most: multiply-adds, and bytes of memory and of each core's L2 cache. */
export interface Roof { gflops: number; memory_gbytes_per_s: number; l2_gbytes_per_s: number }
export interface JobResult extends Partial<Summary> {
  package?: string; records?: string; times_ms?: Record<string, number>; warnings?: string[]; tuned?: boolean;
  before?: Summary; after?: Summary; speedup?: number; trials?: number; tasks?: Task[]; threads?: number; roof?: Roof | null;
  outputs?: string | {name: string; elements: number; max_abs_error: number; largest: number}[];
  left_out?: {name: string; key: string; calls: number; untuned_ms: number; tuned_ms: number}[];
}
export interface ErrorDetail { pointer?: string; node?: string; op?: string; detail?: string; reason?: string }
export interface UnsupportedModel {
  inputs: TensorSpec[]; outputs: TensorSpec[]; operators: Record<string, number>; opsets: Record<string, number>; parameters: number;
  graph?: Graph;
}
export interface JobError { code: string; detail: string; errors?: ErrorDetail[]; model?: UnsupportedModel }
export interface ResolvedCompile { model?: string; target?: string; opt_level?: number; input_shapes?: Record<string, (number | string)[]> }
export interface Job {
  id: string; kind: 'compile' | 'tune' | 'benchmark' | 'verify' | 'report' | 'run' | 'measure'; state: JobState; attempt: number;
  resolved: (ResolvedCompile & {compile?: ResolvedCompile; package?: string}) | null; progress: Progress; result: JobResult | null;
  error: JobError | null; created_at: string; started_at: string | null; finished_at: string | null; cached?: boolean;
}

export interface ReportRow {
  name: string; model: string; target: string; opt_level: number; state: 'ok' | 'failed'; remarks: string[];
  error?: {step: string; code: string; message: string}; package?: {id: string; archive_bytes: number};
  run?: {times: Summary & {p95_ms: number}; samples_per_s: number}; quality: {accuracy: number | null} | null;
}
export interface Report { job: string; state: JobState; samples: number | null; configurations: ReportRow[] }

export interface Kernel {
  symbol: string; task_key: string; template: string; tuning_record: string; tuning_reason: string; verified: string;
  origins: string[]; algorithm?: string; algorithm_reason?: string;
}
export interface Package {
  id: string; archive: {digest: string; size: number}; inputs: TensorSpec[]; outputs: TensorSpec[]; deployments: string[];
  created_at: string;
  metadata: {
    target: string; model_digest: string; model_format: string; opt_level: number; passes: string[]; kernels: Kernel[];
    options: Record<string, string>; cpu_features: string[]; num_steps: number; host_steps: number; weight_bytes: number;
    arena_bytes: number; worker_workspace_bytes: number; flops: number; verify: string; compiler_build: string;
    members: Record<string, {digest: string; size: number}>;
  };
}
export interface ProfileStep {
  step: string; function: string; origins: string[]; start_us: number; duration_us: number; flops: number; bytes: number;
}
export interface Timing { queue_ms: number; compute_ms: number; decode_ms?: number; runs_ms?: number[]; profile?: ProfileStep[] }
export interface RunAnswer { outputs: Record<string, {dtype: string; shape: number[]; data: unknown[]}>; timing: Timing }
export interface Classification { top: {label: string; index: number; probability: number | string}[]; timing: Timing }

export interface Placement { mode?: 'all' | 'demand' | 'labels'; labels?: string[]; idle_s?: number }
export interface DeploymentVersion { package: string; state: string; reason: string }
export interface Deployment {
  name: string; versions: Record<string, DeploymentVersion>; default_version: string | null; inputs: TensorSpec[];
  outputs: TensorSpec[]; created_at: string; weights?: Record<string, number>; previous?: {version: string; package: string};
  replicas?: Record<string, {state: string; reason: string}>;
}
export interface TrafficMinute {
  since: string; requests: number; failed: number; p50_ms: number | null; p95_ms: number | null; p99_ms: number | null;
}
export interface Traffic extends TrafficMinute { minutes: TrafficMinute[] }

export interface Info {
  version: string; compiler: {id: string; llvm: string; abi: number}; host: {cpu: string; features: string[]; cores: number};
  native_target: string; model_formats: string[]; limits: Record<string, number>;
  confinement: {required: boolean; seccomp: boolean; landlock_abi: number; user: number; memory: string};
}
export interface ParsedTarget {
  canonical: string; features: string[]; digest: string; warnings: string[];
  facts: {vector_bits: number; vector_registers: number; fma: boolean; l1d_bytes: number; l2_bytes: number; num_cores: number};
}
export interface Storage {
  blobs: {count: number; bytes: number; referenced: number}; uploads: {count: number; bytes: number}; quota_bytes: number;
  free_bytes: number; rows: Record<string, number>; callers: {caller: string; live_jobs: number; bytes: number}[];
}
export interface Key { name: string; scopes: string[]; source: string; created_at: string; expires_at: string | null }
export interface AuditEntry {
  ts: string; request_id: string; caller: string; peer: string; client: string; method: string; target: string; status: number;
}
