import type { ReactNode } from 'react';

/** What is known of one thing, name by name. */
export const Facts = ({ children }: { children: ReactNode }) => <dl className="facts">{children}</dl>;

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
