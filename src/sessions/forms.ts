import { openForms } from '../chromium/forms/forms.ts';
import type { Forms } from '../chromium/forms/types.ts';
import type { Hold } from './holds.ts';

/** The forms of a session's pages, for the rooms above that may not reach the browser itself. */
export * from '../chromium/forms/types.ts';

/** Forms of a session of this node. While they are held, the session stays awake and does not time out. */
interface HeldForms {
  readonly forms: Forms;
  /** Aborts when the session is not its holder's any more. */
  readonly until: AbortSignal;
  /** Idempotent. The pages stay as they are. */
  release(): void;
}

export async function holdForms(hold: () => Promise<Hold>): Promise<HeldForms> {
  const held = await hold();
  const forms = openForms(held.engine.mux);
  return {
    forms,
    until: held.until,
    release() {
      forms.dispose();
      held.release();
    },
  };
}
