// Numbers, sizes, times and shapes as people read them.

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'];

export function bytes(count: number): string {
  let unit = 0;
  for (; count >= 1000 && unit + 1 < UNITS.length; ++unit) count /= 1000;
  return (unit === 0 ? String(count) : count.toFixed(1)) + ' ' + UNITS[unit];
}

/** Three digits that count. */
export function digits(value: number): string {
  return String(Number(value.toPrecision(3)));
}

export function ms(value: number | null | undefined): string {
  if (value === null || value === undefined) return '—';
  return value !== 0 && Math.abs(value) < 0.1 ? digits(value * 1000) + ' µs' : digits(value) + ' ms';
}

export function seconds(value: number): string {
  if (value < 90) return digits(value) + ' s';
  const minutes = Math.round(value / 60);
  return minutes < 90 ? minutes + ' min' : digits(minutes / 60) + ' h';
}

export function count(value: number): string {
  return value.toLocaleString('en');
}

export function compact(value: number): string {
  return Intl.NumberFormat('en', {notation: 'compact', maximumFractionDigits: 1}).format(value);
}

export const accuracyText = (part: number | null | undefined): string => (typeof part === 'number' ? (100 * part).toFixed(2) + ' %' : '—');

export function percent(part: number): string {
  return (100 * part).toFixed(1) + ' %';
}

export function when(text: string): string {
  return new Date(text).toLocaleString();
}

export const shortId = (id: string): string => id.replace('sha256:', '').slice(0, 12);

export const shape = (dims: readonly (number | string)[]): string => '[' + dims.join(', ') + ']';

/** The value below which `part` of the values lie, by the nearest rank. */
export function percentile(values: readonly number[], part: number): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? null;
}

/** A cell of a CSV file; a text that a spreadsheet would take for a formula gets an apostrophe before it. */
export function csvCell(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;
  return /[",\n\r]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
}

export const csv = (rows: readonly (readonly (string | number | null | undefined)[])[]): string =>
  rows.map((row) => row.map(csvCell).join(',')).join('\r\n') + '\r\n';
