import { askJson } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { Fault, UsageError } from '../fault.ts';
import { readText } from '../fields.ts';
import { cell } from '../output.ts';
import { word, type Call } from '../table.ts';

interface Executed {
  success: boolean;
  result?: unknown;
  error?: string;
  stdout?: string;
  stderr?: string;
}

export async function executePlaywright(call: Call): Promise<void> {
  const [, typed] = call.arguments as [string, string | undefined];
  const file = call.options['file'] as string | undefined;
  if ((typed === undefined) === (file === undefined))
    throw new UsageError("'corral browsers playwright execute' takes the code, or --file with the file that has it.");
  const code = typed ?? readText(file!, '--file');
  const path = fillPath('/browsers/{id}/playwright/execute', [word(call, 0)]);
  const answer = await askJson<Executed>(call.target(), { method: 'POST', path, body: { ...call.body, code } });
  if (call.output.format === 'table') {
    if (answer.stdout) process.stdout.write(answer.stdout);
    if (answer.stderr) process.stderr.write(answer.stderr);
    if (answer.success && answer.result !== undefined && answer.result !== null) call.output.one(answer.result);
  } else call.output.one(answer);
  if (!answer.success) throw new Fault(cell(answer.error ?? 'The code failed.'));
}
