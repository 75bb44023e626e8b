import type { Operation } from '../lib/operation.ts';

/** What the tools need of the place they run at: a way to ask the public API as their caller, so that its rules are theirs. */
export interface Host {
  ask(question: Question): Promise<Answer>;
  operation(name: string): Operation;
  /** Of the program that serves. */
  version: string;
  /** Families of tools that are left out. */
  disabled: ReadonlySet<string>;
}

export interface Question {
  method: string;
  path: string;
  query?: Record<string, unknown>;
  /** JSON, or bytes. */
  body?: unknown;
}

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  bytes: Buffer;
}

export type Content = { type: 'text'; text: string } | { type: 'image'; data: string; mimeType: string };

export interface Tool {
  name: string;
  /** The family by which it is switched off. */
  toolset: string;
  description: string;
  inputSchema: {
    type: 'object';
    properties: Record<string, object>;
    required: string[];
    additionalProperties?: boolean;
  };
  run(args: Record<string, unknown>, host: Host): Promise<Content[]>;
}

/** What the model did wrong, or the service refused, with what to do next. It is an answer of the tool, not an error of the protocol. */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure';
}
