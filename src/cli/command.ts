import type { ParseArgsConfig } from 'node:util';
import type { Config } from '../config.ts';
import type { Db } from '../store/db.ts';

export interface Command {
  /** One line per form, as --help prints it. */
  usage: string[];
  options: NonNullable<ParseArgsConfig['options']>;
  run(call: Call): Promise<void>;
}

export interface Call {
  db: Db;
  config: Config;
  positionals: string[];
  values: Record<string, unknown>;
  print(line: string): void;
}

export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Columns as wide as their widest cell. */
export function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
