import { conflict, entry } from './entry.ts';

/** Proxies and their checks. */
export const proxyErrors = {
  proxy_type_unavailable: entry(
    400,
    'The operator has configured no upstream for proxies of that type.',
    (p: { type: string }) =>
      `This service has no upstream for ${p.type} proxies. The operator can configure one (CORRAL_PROXY_UPSTREAMS); or use type custom with a proxy of your own.`,
  ),
  proxy_host_refused: entry(
    400,
    'The proxy is at an address that the service may not connect to.',
    (p: { host: string; remedy: string }) =>
      `config.host: ${p.host} is on a private network, this machine or another address that is not public. ${p.remedy}`.trim(),
  ),
  proxy_not_found: entry(
    404,
    'No proxy of the project has that id.',
    (p: { id: string }) => `No proxy has the id '${p.id}'. GET /proxies lists them. The path takes an id, not a name.`,
  ),
  proxy_limit_reached: conflict(
    'The project has its maximum of proxies.',
    (p: { most: number }) => `The project has ${p.most} proxies, which is the maximum. Delete unused proxies.`,
  ),
  proxy_check_failed: entry(
    422,
    'The check of a proxy failed; `details` has the code of the reason.',
    (p: { detail: string }) => `The check failed: ${p.detail}`,
  ),
};
