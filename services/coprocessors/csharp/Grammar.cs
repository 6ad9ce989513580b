namespace Coprocessor
{
    /// <summary>
    /// The grammar of JSON. Newtonsoft.Json reads more than that (comments, single quotes,
    /// commas at the end, numbers with base 8 and 16), and none of it is a message.
    /// </summary>
    struct Grammar
    {
        /// <summary>How deep lists and objects may be nested; the writer needs the stack for each.</summary>
        const int Depth = 256;

        readonly byte[] bytes;
        readonly int length;
        int place;

        Grammar(byte[] bytes, int length)
        {
            this.bytes = bytes;
            this.length = length;
            place = 0;
        }

        /// <summary>Where these bytes stop being one object, or -1.</summary>
        public static int Mistake(byte[] bytes, int length)
        {
            var grammar = new Grammar(bytes, length);
            grammar.Skip();
            bool isObject = grammar.Next() == '{' && grammar.Value(Depth);
            grammar.Skip();
            return isObject && grammar.place == length ? -1 : grammar.place;
        }

        int Next() => place < length ? bytes[place] : -1;

        bool Take(int wanted)
        {
            if (Next() != wanted)
            {
                return false;
            }
            place++;
            return true;
        }

        void Skip()
        {
            while (Next() == ' ' || Next() == '\n' || Next() == '\r' || Next() == '\t')
            {
                place++;
            }
        }

        bool Value(int depth)
        {
            switch (Next())
            {
                case '{': return depth > 0 && List('}', true, depth - 1);
                case '[': return depth > 0 && List(']', false, depth - 1);
                case '"': return Text();
                case 't': return Word("true");
                case 'f': return Word("false");
                case 'n': return Word("null");
                default: return Number();
            }
        }

        bool List(char end, bool isObject, int depth)
        {
            place++;
            Skip();
            if (Take(end))
            {
                return true;
            }
            while (!isObject || Name())
            {
                if (!Value(depth))
                {
                    return false;
                }
                Skip();
                if (!Take(','))
                {
                    return Take(end);
                }
                Skip();
            }
            return false;
        }

        bool Name()
        {
            if (!Text())
            {
                return false;
            }
            Skip();
            bool isName = Take(':');
            Skip();
            return isName;
        }

        bool Text()
        {
            if (!Take('"'))
            {
                return false;
            }
            while (place < length && bytes[place] >= ' ')
            {
                switch (bytes[place++])
                {
                    case (byte)'"':
                        return true;
                    case (byte)'\\':
                        if (!Escape())
                        {
                            return false;
                        }
                        break;
                }
            }
            return false;
        }

        bool Escape()
        {
            int letter = Next();
            place++;
            if (letter != 'u')
            {
                return letter > 0 && "\"\\/bfnrt".IndexOf((char)letter) >= 0;
            }
            for (int count = 0; count < 4; count++, place++)
            {
                int digit = Next() | 0x20;
                if (!(Next() >= '0' && Next() <= '9') && !(Next() >= 'A' && digit >= 'a' && digit <= 'f'))
                {
                    return false;
                }
            }
            return true;
        }

        bool Word(string word)
        {
            foreach (char letter in word)
            {
                if (!Take(letter))
                {
                    return false;
                }
            }
            return true;
        }

        bool Number()
        {
            Take('-');
            if (!Take('0') && !Digits())
            {
                return false;
            }
            if (Take('.') && !Digits())
            {
                return false;
            }
            if (Take('e') || Take('E'))
            {
                if (!Take('+'))
                {
                    Take('-');
                }
                return Digits();
            }
            return true;
        }

        bool Digits()
        {
            int start = place;
            while (Next() >= '0' && Next() <= '9')
            {
                place++;
            }
            return place > start;
        }
    }
}
