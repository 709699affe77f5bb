// A colour for each kind of operator, the same in every graph; the words beside it say the same.
const TONES: [RegExp, string][] = [
  [/^(input|output)$/, '#6b7785'],
  [/conv/, '#3d7fb8'],
  [/matmul|gemm|dense|product|einsum/, '#7a5bb5'],
  [/attention|softmax/, '#b0508f'],
  [/norm/, '#4a9a77'],
  [/relu|gelu|sigmoid|tanh|silu|clip|erf|exp|elu/, '#c08a2d'],
  [/pool|reduce|mean|sum|max|min/, '#b3643c'],
  [/reshape|transpose|flatten|concat|slice|gather|split|pad|squeeze|blocked|cast|layout|expand/, '#8a9199'],
];

export function toneOf(op: string, fused: readonly string[]): string {
  const text = fused.length > 0 ? fused.join(' ') : op;
  for (const [pattern, tone] of TONES) if (pattern.test(text)) return tone;
  return '#5f8a9e';
}
