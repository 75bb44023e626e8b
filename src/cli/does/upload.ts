import { basename } from 'node:path';
import { ask } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { multipart, type Part } from '../multipart.ts';
import { jsonOf } from '../client/http.ts';
import { word, type Call } from '../table.ts';

export async function loadExtensions(call: Call): Promise<void> {
  const files = call.arguments[1] as string[];
  const parts = files.flatMap((path, index): Part[] => [
    [`extensions[${index}][name]`, basename(path).replace(/\.zip$/i, '')],
    [`extensions[${index}][zip_file]`, { path }],
  ]);
  const path = fillPath('/browsers/{id}/extensions', [word(call, 0)]);
  const answer = await ask(call.target(), { method: 'POST', path, ...multipart(parts) });
  call.output.done(`Loaded ${files.length}.`, await jsonOf(answer));
}

export async function uploadExtension(call: Call): Promise<void> {
  const file = word(call, 0);
  const name = call.options['name'] as string | undefined;
  const parts: Part[] = [...(name === undefined ? [] : [['name', name] as const]), ['file', { path: file }]];
  const answer = await ask(call.target(), { method: 'POST', path: '/extensions', ...multipart(parts) });
  call.output.one(await jsonOf(answer));
}
