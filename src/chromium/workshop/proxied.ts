import { GATEWAY_PORT } from '../sandbox/scripts.ts';

/** The environment that makes programs use the gateway, as arguments of `env`. `direct` are hosts that have listeners. */
export function proxied(direct: readonly string[]): string[] {
  const gateway = `http://127.0.0.1:${GATEWAY_PORT}`;
  const hosts = direct.join(',');
  const variables = { HTTP_PROXY: gateway, HTTPS_PROXY: gateway, NO_PROXY: hosts, NODE_USE_ENV_PROXY: '1' };
  return Object.entries(variables)
    .filter(([, value]) => value !== '')
    .flatMap(([name, value]) => [
      `${name}=${value}`,
      ...(name.endsWith('PROXY') && name !== 'NODE_USE_ENV_PROXY' ? [`${name.toLowerCase()}=${value}`] : []),
    ]);
}
