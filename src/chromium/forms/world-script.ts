import { webFile } from '../../lib/web-files.ts';

let script: string | undefined;

/** An expression with the functions of web/page.ts, which it installs in a document that does not have them yet. */
export function installed(): string {
  script ??= webFile('chromium/forms/web/page.js').toString();
  return `globalThis.corralForms ?? ${script}.calls`;
}
