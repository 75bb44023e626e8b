import { prepare } from './bootstrap.mjs';
import { script } from './say.mjs';

await script(() => prepare({ system: 'skip' }));
