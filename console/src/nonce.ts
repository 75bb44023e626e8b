/**
 * The page's policy allows style elements only with its nonce. The components and the terminal make such elements while they run, each in a
 * way of its own; so every style element that is made here gets the nonce.
 */
const nonce = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.nonce ?? '';
const create = document.createElement.bind(document);

document.createElement = (name: string, options?: ElementCreationOptions) => {
  const element = create(name, options);
  if (name === 'style') element.nonce = nonce;
  return element;
};
