/** Line icons of 16 units, drawn in the colour of the text. */
const paths = {
  overview: 'M2.5 2.5h4v6h-4zM9.5 2.5h4v3h-4zM9.5 8.5h4v5h-4zM2.5 11.5h4v2h-4z',
  sessions: 'M1.5 3.5h13v9h-13zM1.5 6h13M3.5 4.8h.1M5.3 4.8h.1',
  pools: 'M2 5.5 8 2.5l6 3-6 3zM2 8.2l6 3 6-3M2 10.9l6 3 6-3',
  profiles: 'M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM3 13.5c.5-2.6 2.5-4 5-4s4.5 1.4 5 4',
  extensions: 'M6 3.5a1.5 1.5 0 0 1 3 0v1h3.5v3.5h-1a1.5 1.5 0 0 0 0 3h1v2.5H3v-9h3z',
  proxies: 'M2 8h4M10 8h4M6 8a2 2 0 1 0 4 0 2 2 0 0 0-4 0ZM12 5.5 14.5 8 12 10.5',
  credentials: 'M6 9.5a3 3 0 1 1 1.8-2.4L14 7v2.5h-1.5V11H10V9.5z',
  logins: 'M9 2.5h4.5v11H9M2 8h7.5M7 5.5 9.5 8 7 10.5',
  deployments: 'M8 1.8 13.5 5v6L8 14.2 2.5 11V5zM2.5 5 8 8.2 13.5 5M8 8.2v6',
  projects: 'M1.5 3.5h4.5l1.500 2h7v8h-13z',
  org: 'M2.5 13.5v-11h7v11M9.5 6.5h4v7M5 5.5h2M5 8h2M5 10.5h2',
  audit: 'M3.5 1.5h9v13h-9zM5.5 5h5M5.5 8h5M5.5 11h3',
  about: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 7.5V11M8 5.2h.1',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5Z',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  check: 'M3 8.5 6.5 12 13 4.5',
  plus: 'M8 3v10M3 8h10',
  more: 'M3.5 8h.1M8 8h.1M12.5 8h.1',
  leave: 'M7 2.5H2.5v11H7M6.5 8H14M11.5 5.5 14 8l-2.5 2.5',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5l3.5 3.5',
  docs: 'M3 2.5h4.2c.5 0 .8.4.8.8v10.2c0-.500-.400-1-1-1H3zM13 2.5H8.8c-.5 0-.8.4-.8.8v10.2c0-.500.4-1 1-1h4z',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      viewBox="0 0 16 16"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'more' ? 2 : 1.3}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden
    >
      <path d={paths[name]} />
    </svg>
  );
}
