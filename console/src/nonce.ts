/**
 * The page's policy allows style elements only with its nonce. The components and the terminal create such elements at run time, each in
 * another way, so every new style element gets the nonce.
 */
const nonce = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.nonce ?? '';
const create = document.createElement.bind(document);

document.createElement = (name: string, options?: ElementCreationOptions) => {
  const element = create(name, options);
  if (name === 'style') element.nonce = nonce;
  return element;
};
