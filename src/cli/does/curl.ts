import { askJson } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { UsageError } from '../fault.ts';
import { readText } from '../fields.ts';
import { word, type Call } from '../table.ts';

interface Curled {
  status: number;
  body: string;
}

export async function browserCurl(call: Call): Promise<void> {
  const { method, header = [], data } = call.options as { method?: string; header?: string[]; data?: string };
  const headers = Object.fromEntries(header.map(pairOf));
  const text = data?.startsWith('@') ? readText(data.slice(1), '--data') : data;
  const binary = call.output.format === 'table' && call.body!['response_encoding'] === undefined;
  const body = {
    ...call.body,
    method: method?.toUpperCase() ?? (data === undefined ? 'GET' : 'POST'),
    ...(header.length > 0 ? { headers } : {}),
    ...(text === undefined ? {} : { body: text }),
    // In the table format, the bytes are written to stdout unchanged.
    ...(binary ? { response_encoding: 'base64' } : {}),
  };
  const path = fillPath('/browsers/{id}/curl', [word(call, 0)]);
  const answer = await askJson<Curled>(call.target(), { method: 'POST', path, body });
  if (call.output.format !== 'table') return call.output.one(answer);
  process.stdout.write(binary ? Buffer.from(answer.body, 'base64') : answer.body);
  if (answer.status >= 400) call.output.note(`The answer has status ${answer.status}.`);
}

function pairOf(header: string): [string, string] {
  const found = /^([^:\s]+):/.exec(header);
  if (!found) throw new UsageError(`--header takes "Name: value", not '${header}'.`);
  return [found[1]!, header.slice(found[0].length).trimStart()];
}
