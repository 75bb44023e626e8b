import type { App } from './app.ts';
import { adminer, deluge, jupyter, znc } from './debian.ts';
import { djangoAdmin, djangoOtp } from './django.ts';
import { nodeRed, oidc, parseDashboard, verdaccio } from './npm.ts';

export { provideApp, type App, type RunningApp } from './app.ts';

/** The cheapest first: what a test of CI uses is at the top. */
export const apps: App[] = [
  djangoOtp,
  djangoAdmin,
  oidc,
  adminer,
  znc,
  nodeRed,
  verdaccio,
  parseDashboard,
  jupyter,
  deluge,
];
