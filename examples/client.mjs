import Kernel from '@onkernel/sdk';

/** The client of every example, for the service at CORRAL_URL. */
export const corral = new Kernel({
  apiKey: process.env.KEY,
  baseURL: process.env.CORRAL_URL ?? 'http://127.0.0.1:3000',
});

/** The page to visit. */
export const url = process.argv[2] ?? 'https://example.com';
