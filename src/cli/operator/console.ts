import { nodeStore } from '../../cluster/store.ts';
import { consoleLinks, linkAddress, linkMinutes } from '../../console/links.ts';
import { errors } from '../../errors.ts';
import { apiKeyService } from '../../org/api-keys.ts';
import { orgStore } from '../../org/store.ts';
import { openKeys, secretStore } from '../../store/secrets.ts';
import type { Output } from '../output.ts';
import { visit } from './visit.ts';

export function makeConsoleLink(output: Output, project: string | undefined): Promise<void> {
  return visit(async ({ db, config }) => {
    const row = project === undefined ? undefined : await orgStore(db).findProjectByIdOrName(project);
    if (project !== undefined && row?.status !== 'active') throw errors.project_not_found({ project });
    const secrets = secretStore(db, await openKeys(config.dataDir, config.secretKey));
    const links = consoleLinks({ db, secrets, keys: apiKeyService({ db, changed: () => {} }) });
    const [node] = await nodeStore(db).list();
    const host = /^(0\.0\.0\.0|::)$/.test(config.host) ? 'localhost' : config.host;
    const url = config.publicUrl || node?.public_url || `http://${host}:${config.port}`;
    const link = linkAddress(url.replace(/\/$/, ''), await links.create(row?.id ?? null));
    const lines = [
      link,
      ...(node ? [] : ['No node is running: start the service before you open the link.']),
      `It works once, within ${linkMinutes} minutes.`,
    ];
    output.done(lines.join('\n'), { url: link, minutes: linkMinutes, running: Boolean(node) });
  });
}
