import { ask, jsonOf } from '../client/http.ts';
import type { Call } from '../table.ts';

interface About {
  node_id: string;
  public_url: string;
  versions: Record<string, string | null>;
  event_loop: { longest_stop_ms: number };
  settings: { name: string; value: string | null; is_default: boolean }[];
  doctor: {
    findings: { name: string; well: boolean; saw: string; switched_off?: string }[];
    mends: string[];
    failure: string | null;
  };
}

/** In the table format: the node and its versions, then settings that are not the default and missing parts. Otherwise the answer. */
export async function about({ target, output }: Call): Promise<void> {
  const answer = await jsonOf<About>(await ask(target(), { method: 'GET', path: '/about' }));
  if (output.format !== 'table') return output.one(answer);
  const { doctor } = answer;
  output.one({
    node: answer.node_id,
    address: answer.public_url,
    ...answer.versions,
    longest_stop_ms: answer.event_loop.longest_stop_ms,
  });
  const set = answer.settings.filter(({ is_default }) => !is_default);
  output.note('\nSettings that are not the default:');
  output.list(
    set.map(({ name, value }) => ({ setting: name, value: value ?? '(secret)' })),
    ['setting', 'value'],
  );
  output.note(`\nOn the machine${doctor.failure === null ? '' : `: ${doctor.failure}`}`);
  const findings = doctor.findings.map(({ well, ...rest }) => ({ ...rest, state: well ? 'ok' : 'missing' }));
  if (doctor.failure === null) output.list(findings, ['name', 'state', 'saw', 'switched_off']);
  if (doctor.mends.length > 0) output.note(`\nTo repair:\n\n${doctor.mends.join('\n')}`);
}
