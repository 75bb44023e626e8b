import { unknownFields } from '../../api/unknown-fields.ts';
import { validatorCompiler } from '../../api/validation.ts';
import { errors } from '../../errors.ts';
import { CreateSession } from '../../sessions/schema.ts';

const validate = validatorCompiler()({ schema: CreateSession, httpPart: 'body', method: 'POST', url: '/session' });

/** The options of a session, by the rules of `POST /browsers`. Unknown ones are refused: the answer has no place for a warning. */
export function optionsOf(given: Record<string, unknown>): CreateSession {
  const refuse = (detail: string) => errors.invalid_input({ detail: `corral:options: ${detail}` });
  const [unknown] = unknownFields(given, CreateSession);
  if (unknown) throw refuse(unknown.sentence);
  const { error } = validate(given) as { error?: Error };
  if (error) throw refuse(error.message);
  return given;
}
