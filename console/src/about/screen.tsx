import { Anchor, Stack, Table, Text, Title } from '@mantine/core';
import { Fact, Facts } from '../parts/facts.tsx';
import { Refusal, Screen, State, Waiting } from '../parts/parts.tsx';
import { useReadiness } from '../overview/readiness.ts';
import { NodeCells } from '../overview/node-cells.tsx';

/** What this service is, and whether each part of it works. */
export function About() {
  const health = useReadiness();
  if (health.isPending) return <Waiting />;
  const parts = health.data?.parts ?? [];
  const nodes = parts.flatMap((part) => part.nodes ?? []);
  return (
    <Screen title="About" actions={<State of={health.data?.status} />}>
      <Refusal error={health.error} />
      <Facts>
        <Fact name="Version">{health.data?.version}</Fact>
        <Fact name="Address">{location.origin}</Fact>
        <Fact name="Documents">
          <Anchor href="/docs" size="sm">
            API reference and guides
          </Anchor>
        </Fact>
      </Facts>
      <Stack gap="xs" component="section">
        <Title order={2} size="h5">
          Parts
        </Title>
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
        <Text size="sm" c="dimmed">
          <code>npm run doctor</code> on the machine of a node finds what is missing there, and says how to mend it.
        </Text>
      </Stack>
      {nodes.length > 0 && (
        <Stack gap="xs" component="section">
          <Title order={2} size="h5">
            Nodes
          </Title>
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
        </Stack>
      )}
    </Screen>
  );
}
