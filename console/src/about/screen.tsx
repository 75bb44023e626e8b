import { Anchor, Switch, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { api, ask } from '../api/client.ts';
import { useLive } from '../api/live.ts';
import type { About as AboutAnswer } from '../api/schema.gen.d.ts';
import { NodeCells } from '../overview/node-cells.tsx';
import { useReadiness } from '../overview/readiness.ts';
import { Fact, Facts } from '../parts/facts.tsx';
import { Refusal, Screen, Section, Snippet, State, Waiting } from '../parts/parts.tsx';
import { Time } from '../parts/time.tsx';

/** The version, the state, the settings and the machine of the service. */
export function About() {
  const health = useReadiness();
  const about = useLive(['about'], () => ask(api.GET('/about')), { every: 60_000 });
  if (health.isPending) return <Waiting />;
  const parts = health.data?.parts ?? [];
  const nodes = parts.flatMap((part) => part.nodes ?? []);
  return (
    <Screen title="About" actions={<State of={health.data?.status} />}>
      <Refusal error={health.error} />
      <Facts>
        <Fact name="Corral">{health.data?.version}</Fact>
        {about.data && <Versions {...about.data.versions} />}
        {about.data && <Fact name="Longest stop">{about.data.event_loop.longest_stop_ms} ms in the last hour</Fact>}
        <Fact name="Address">{location.origin}</Fact>
        <Fact name="Documents">
          <Anchor href="/docs" size="sm">
            API reference and guides
          </Anchor>
        </Fact>
      </Facts>
      <Section title="Parts">
        <Table verticalSpacing={6} aria-label="Parts">
          <Table.Tbody>
            {parts.map(({ name, ok, detail }) => (
              <Table.Tr key={name}>
                <Table.Td>{name}</Table.Td>
                <Table.Td>
                  <State of={ok ? 'ready' : 'degraded'} />
                </Table.Td>
                <Table.Td className="wrap">{detail}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Section>
      {nodes.length > 0 && (
        <Section title="Nodes">
          <Table verticalSpacing={6} aria-label="Nodes">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Address</Table.Th>
                <Table.Th>Sessions</Table.Th>
                <Table.Th className="wide-only">Version</Table.Th>
                <Table.Th className="wide-only">Heard of</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {nodes.map((node) => (
                <Table.Tr key={node.id}>
                  <NodeCells node={node} />
                  <Table.Td className="wide-only nowrap">{Math.round(node.silent_ms / 1000)} s ago</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Section>
      )}
      <Refusal error={about.error} />
      {about.isPending && <Waiting />}
      {about.data && <Machine {...about.data.doctor} />}
      {about.data && <Settings settings={about.data.settings} />}
    </Screen>
  );
}

function Versions({ node, chromium, headless_shell, postgresql }: AboutAnswer['versions']) {
  return (
    <>
      <Fact name="Chromium">{chromium ?? 'not on this machine'}</Fact>
      {headless_shell !== chromium && <Fact name="Headless shell">{headless_shell ?? 'not on this machine'}</Fact>}
      <Fact name="Node">{node}</Fact>
      <Fact name="PostgreSQL">{postgresql}</Fact>
    </>
  );
}

/** The findings of `corral doctor` on the machine of the node that answers. */
function Machine({ findings, mends, failure, checked_at }: AboutAnswer['doctor']) {
  return (
    <Section title="The machine">
      <Text size="sm" c="dimmed">
        Findings of <code>corral doctor</code> on the node that answers, <Time at={checked_at} />.
      </Text>
      <Refusal error={failure === null ? null : new Error(failure)} />
      {mends.length > 0 && <Snippet text={mends.join('\n')} label="the remedies" />}
      {findings.length > 0 && (
        <Table verticalSpacing={6} aria-label="The machine">
          <Table.Tbody>
            {findings.map(({ name, well, required, saw, switched_off }) => (
              <Table.Tr key={name}>
                <Table.Td>{name}</Table.Td>
                <Table.Td>
                  <State of={well ? 'ready' : required ? 'unavailable' : 'degraded'} />
                </Table.Td>
                <Table.Td className="wrap">
                  {saw}
                  {switched_off && <Text size="sm">Switched off: {switched_off}</Text>}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Section>
  );
}

/** The settings of the node that answers. Settings that are not the default come first. */
function Settings({ settings }: { settings: AboutAnswer['settings'] }) {
  const [all, setAll] = useState(false);
  const shown = all ? settings : settings.filter(({ is_default }) => !is_default);
  return (
    <Section title="Settings in force">
      <Switch label="Also those that have their default" checked={all} onChange={() => setAll(!all)} />
      {shown.length === 0 && <Text size="sm">Every setting has its default.</Text>}
      {shown.length > 0 && (
        <Table verticalSpacing={6} aria-label="Settings in force">
          <Table.Tbody>
            {shown.map(({ name, value, meaning }) => (
              <Table.Tr key={name}>
                <Table.Td className="setting">
                  <code>{name}</code>
                </Table.Td>
                <Table.Td className="wrap">{value === null ? 'secret' : <code>{value}</code>}</Table.Td>
                <Table.Td className="wide-only wrap">{meaning.replaceAll('`', '')}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Section>
  );
}
