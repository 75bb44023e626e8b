import { operation } from '../cli/client/operations.ts';
import { mcpService } from '../mcp/service.ts';
import { version } from '../version.ts';
import type { Ground } from './ground.ts';

/** Tools for agents, at `/mcp`. They ask this service at the address where it listens. */
export function openMcp({ config }: Ground, listensAt: () => string) {
  return mcpService({ url: listensAt, operation, disabled: config.mcpDisabledToolsets, version });
}
