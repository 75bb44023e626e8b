/** One line of the table that `npm run bench` prints: a figure, its comparison from the same run, and the limit. */
export interface Row {
  what: string;
  value: number;
  unit: string;
  /** The comparison of the ratio; without a ratio, a remark. */
  beside?: string;
  ratio?: number;
  bar?: string;
}

export const median = (values: number[]) => percentile(values, 50);

export function percentile(values: number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil((p / 100) * sorted.length) - 1)] ?? Number.NaN;
}

export function print(rows: Row[]) {
  const cells = rows.map((row) => [
    row.what,
    `${format(row.value)} ${row.unit}`,
    row.ratio === undefined ? (row.beside ?? '') : `${row.ratio.toFixed(2)} × ${row.beside ?? ''}`,
    row.bar ?? '',
  ]);
  const table = [['what', 'measured', 'beside', 'bar'], ...cells];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]!.length)));
  for (const row of table)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    );
}

const format = (value: number) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));
