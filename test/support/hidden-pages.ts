import type { HiddenPage, HiddenPages } from '../../src/chromium/pages/hidden-pages.ts';

/** A hidden page that sends the events of `travels` when it navigates, and the pieces of `read` as the body of the answer. */
export function hiddenPages(
  travels: (say: (event: string, params: object) => void) => void,
  read: () => { data: string; eof: boolean } = () => ({ data: 'end', eof: true }),
): HiddenPages {
  const listeners = new Set<[string, (params: object) => void]>();
  const say = (event: string, params: object) => {
    for (const [heard, listener] of listeners) if (heard === event) listener(params);
  };
  const answers: Record<string, object> = { 'Fetch.takeResponseBodyAsStream': { stream: '1' } };
  const answered = async (method: string) => {
    if (method === 'IO.read') return read();
    if (method !== 'Page.navigate') return answers[method] ?? {};
    travels(say);
    await new Promise((resolve) => setTimeout(resolve, 100));
    return { errorText: 'net::ERR_ABORTED' };
  };
  const page: HiddenPage = {
    send: (method, ..._args) => answered(method),
    async ask(is, method, ..._args) {
      const result = await answered(method);
      if (!is(result)) throw new Error(`${method} is not answered like that`);
      return result;
    },
    on(event, is, listener) {
      const entry: [string, (params: object) => void] = [event, (params) => is(params) && listener(params)];
      listeners.add(entry);
      return () => listeners.delete(entry);
    },
  };
  return {
    use: (work) => work(page),
    get client(): never {
      throw new Error('it is not needed');
    },
  };
}
