import type { Command } from 'commander';
import type { Target } from './client/http.ts';
import type { Output } from './output.ts';

/**
 * The command line is described by tables. A noun has verbs, and a verb is mostly one operation of the API: its path parameters become
 * arguments, its fields become options, both with the words of openapi.json. A verb that does more has a `run`.
 */
export interface Verb {
  name: string;
  /** The operationId. */
  operation?: string;
  /** What it does; the summary of its operation if not given. */
  about?: string;
  /** Fields of the operation that are given as arguments, after the parameters of the path. */
  takes?: readonly string[];
  /** Arguments of a verb that is not one operation, as commander spells them: `<id>`, `[path]`, `[words...]`. */
  arguments?: readonly string[];
  /** Further options, as commander spells them. */
  options?: readonly (readonly [flags: string, about: string])[];
  /** Fields without an option, because `run` sets them. */
  without?: readonly string[];
  /** The columns of a list. */
  columns?: readonly string[];
  /** Where the answer has the list, when it is not the answer itself. */
  rows?: string;
  /** What an answer without content means; `{}` is the first argument. */
  done?: string;
  /** The file that an answer of bytes goes to; `{}` is the first argument. */
  file?: string;
  /** Two examples of arguments after `corral NOUN VERB`, each with an explanation. */
  examples?: readonly (readonly [line: string, about: string])[];
  verbs?: readonly Verb[];
  run?(call: Call): Promise<void>;
}

export interface Noun extends Omit<Verb, 'operation'> {
  about: string;
  /** The group of `corral --help`. */
  group: string;
  /** The verbs of a noun, or the one verb that the noun itself is. Imported when the noun is used. */
  load?(): Promise<readonly Verb[] | Verb>;
}

/** Builds the whole command line, with the verbs of one noun. */
export type Program = (noun: string | undefined) => Promise<Command>;

/** One call of a verb. */
export interface Call {
  /** The service, resolved on first use: help and completion do not need it. */
  target(): Target & { from: string; context?: string };
  output: Output;
  arguments: readonly (string | readonly string[] | undefined)[];
  /** Options by their names without dashes in front, as given. */
  options: Record<string, unknown>;
  /** The query and body that the options and arguments make for the operation of the verb. */
  query: Record<string, unknown>;
  body: Record<string, unknown> | undefined;
  env: Record<string, string | undefined>;
  /** The command line itself, for completion. */
  program: Program;
}

/** The argument at a place that commander has checked to be there. */
export function word(call: Call, place: number): string {
  return call.arguments[place] as string;
}
