import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

interface Description {
  version: object;
  domains: object[];
}

let read: Promise<string> | undefined;

/** The protocol as JSON, as Chromium has it at /json/protocol. Read on first use: it has a megabyte. */
export function protocolDescription(): Promise<string> {
  read ??= Promise.all(['browser_protocol', 'js_protocol'].map(part)).then(([browser, js]) =>
    JSON.stringify({ version: browser!.version, domains: [...browser!.domains, ...js!.domains] }),
  );
  read.catch(() => (read = undefined));
  return read;
}

async function part(name: string): Promise<Description> {
  const path = createRequire(import.meta.url).resolve(`devtools-protocol/json/${name}.json`);
  return JSON.parse(await readFile(path, 'utf8')) as Description;
}
